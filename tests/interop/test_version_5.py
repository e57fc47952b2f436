"""A table of version 5 is there for those who stay with Apache Hudi 0.12 and 0.13. 0.15.0 must read it as we do, and
take it over: its first write makes it a table of version 6, whose metadata table has file groups with ids of version 5.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.cow_rows import key_range, rows
from tests.interop.cow_tables import SHAPES, Shared
from tests.interop.mor_tables import BLOCK_FORMAT, SharedLogs
from tests.interop.test_version_6 import options_of
from tests.support.reference.client import ReferenceHudi

SHAPE = SHAPES[2]


def test_a_copy_on_write_table_of_ours_is_read_and_taken_over(tmp_path: Path, hudi_0150: ReferenceHudi) -> None:
    given = options_of(SHAPE, {})
    shared = Shared(tmp_path / "rides", SHAPE, version=5)
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.upsert(rows(key_range(80, 140, 3), turn=2))
    shared.check(hudi_0150)
    assert shared.ours.table_version == 5
    shared.hudi_write(hudi_0150, "upsert", rows(key_range(3, 150, 5), turn=30), **given)
    assert shared.ours.table_version == 6
    shared.upsert(rows(key_range(3, 160, 4), turn=40))
    shared.check(hudi_0150)
    shared.hudi_delete(hudi_0150, key_range(83, 110, 3), **given)
    shared.check(hudi_0150)


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_logs_and_a_pending_compaction_of_ours_are_read_and_taken_over(
    tmp_path: Path, hudi_0150: ReferenceHudi, kind: str
) -> None:
    given = options_of(SHAPE, {BLOCK_FORMAT: kind})
    shared = SharedLogs(tmp_path / "rides", SHAPE, version=5, properties={BLOCK_FORMAT: kind})
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.upsert(rows(key_range(80, 140, 3), turn=2))
    shared.delete(sorted(shared.model.rows)[3::17])
    shared.check(hudi_0150)
    assert shared.ours.schedule_compaction().requested
    shared.upsert(rows(sorted(shared.model.rows)[::5], turn=30))
    shared.check(hudi_0150)
    assert shared.ours.table_version == 5
    shared.hudi_write(hudi_0150, "upsert", rows(sorted(shared.model.rows)[::7], turn=40), **given)
    assert shared.ours.table_version == 6
    shared.upsert(rows(sorted(shared.model.rows)[::4], turn=50))
    shared.check(hudi_0150)
    shared.ours.compact()
    shared.check(hudi_0150)
