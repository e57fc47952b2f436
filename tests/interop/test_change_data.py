"""Apache Hudi could read other changes from what we wrote, or stop at it; or we from what it wrote upon it.

Both tell the changes of one table, write by write and for the whole, after each of us has written.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.change_data import counted
from tests.support.reference.client import ReferenceHudi

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.float64())])
FACTS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.cdc.enabled": "true",
    "hoodie.metadata.enable": "false",
}
CDC = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}


def rows(first: int, last: int, time: int, *, step: int = 1) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": f"k{n:03d}", "part": f"p{n % 2}", "ts": time, "v": n + time / 4} for n in range(first, last, step)],
        SCHEMA,
    )


@pytest.mark.parametrize(
    "kind,mode",
    [
        ("COPY_ON_WRITE", "DATA_BEFORE_AFTER"),
        ("COPY_ON_WRITE", "OP_KEY_ONLY"),
        ("COPY_ON_WRITE", "DATA_BEFORE"),
        ("MERGE_ON_READ", "DATA_BEFORE_AFTER"),
    ],
)
def test_both_tell_the_same_changes_of_what_both_wrote(
    tmp_path: Path, hudi_120: ReferenceHudi, kind: str, mode: str
) -> None:
    options: dict[str, Any] = {
        **FACTS,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    properties = {
        name: options[name] for name in ("hoodie.table.cdc.enabled", "hoodie.table.cdc.supplemental.logging.mode")
    }
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="ts", table_type=kind,
        properties={**properties, "hoodie.metadata.enable": "false"},
    )  # fmt: skip
    table.insert(rows(0, 40, 1))
    table.upsert(rows(30, 50, 2))
    table.delete(rows(0, 12, 3, step=3).select(["id", "part", "ts"]))
    check(hudi_120, table)

    hudi_120.write(tmp_path / "t", rows(3, 60, 4, step=4), operation="upsert", **options)
    check(hudi_120, table)
    table.upsert(rows(0, 64, 5, step=5))
    table.insert_overwrite(rows(70, 78, 6, step=2))
    hudi_120.write(tmp_path / "t", rows(1, 20, 7, step=2), operation="delete", **options)
    table.delete_partitions(["p1"])
    table.upsert(rows(60, 80, 8))
    check(hudi_120, table)


def check(hudi: ReferenceHudi, table: HudiTable) -> None:
    start = "000"
    ranges = [(start, None), *((str(int(i.requested) - 1), i.requested) for i in table.timeline()[-4:])]
    for begin, end in ranges:
        until = {} if end is None else {"hoodie.datasource.read.end.instanttime": end}
        theirs = hudi.read(table.path, **CDC, **{"hoodie.datasource.read.begin.instanttime": begin}, **until)
        assert counted(table.cdc(begin, end).as_json().to_arrow()) == counted(theirs)
