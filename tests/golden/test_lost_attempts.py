"""A task that ran twice leaves two logs that differ by their write token: only the one that the commit names counts."""

from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.log.delete import make_deletes
from pyhudi.format.log.writer import encode_delete_block
from pyhudi.format.names import LogFileName
from pyhudi.storage.local import LocalStorage
from pyhudi.table.read.files import read_plan_table
from pyhudi.table.read.plan import plan_snapshot
from pyhudi.table.view.snapshot import read_snapshot
from tests.support.golden_tables import GoldenTables, listing_by_storage


def rows(path: Path) -> pa.Table:
    storage = LocalStorage(str(path))
    snapshot = read_snapshot(storage, UTC, listing_by_storage)
    plan = plan_snapshot(snapshot, schema=snapshot.schema_with_meta, predicate=None, where=None, query="snapshot")
    return read_plan_table(storage, plan, SerialExecutor())


@pytest.mark.parametrize("token", ["0-0-0", "9-9999-9999"], ids=["before", "after"])
def test_the_log_of_a_lost_attempt_is_not_read(tmp_path: Path, token: str) -> None:
    table = GoldenTables(tmp_path).get("mor_avro_v8_h102")
    before = rows(table.path)
    log = next(file for file in sorted((table.path / "p1").iterdir()) if LogFileName.parse(file.name))
    name = LogFileName.parse(log.name)
    assert name is not None
    keys = before["_hoodie_record_key"].combine_chunks()
    deletes = make_deletes(keys, pa.repeat("p1", len(keys)))
    lost = log.with_name(log.name.replace(name.write_token or "", token))
    lost.write_bytes(encode_delete_block(deletes, instant_time=name.instant))

    assert rows(table.path).equals(before)

    lost.rename(log)
    assert len(rows(table.path)) < len(before)
