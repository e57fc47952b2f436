"""A table of ORC files could take a time that its files, once written, are not read with any more."""

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.storage.memory import MemoryStorage

TIME = pa.timestamp("us", "UTC")
LEAST, GREATEST = datetime(1677, 9, 22), datetime(2262, 4, 11)
TOO_EARLY, TOO_LATE = datetime(1677, 9, 21), datetime(2262, 4, 12)


def made(table_type: str) -> HudiTable:
    facts = {"hoodie.table.base.file.format": "ORC", "hoodie.metadata.enable": "false"}
    return HudiTable.create(
        "", name="t", record_key="id", table_type=table_type, properties=facts, storage=MemoryStorage()
    )


def rows(values: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"id": [f"k{at}" for at in range(len(values))], "at": pa.array(values, kind)})


def test_the_least_and_the_greatest_time_are_read_again() -> None:
    table = made("COPY_ON_WRITE")
    table.insert(rows([LEAST, None, GREATEST], TIME))
    stored = table.scan(columns=["at"]).to_arrow().column("at").cast(pa.timestamp("us")).to_pylist()
    assert stored == [LEAST, None, GREATEST]


@pytest.mark.parametrize(
    "value,kind",
    [
        (TOO_EARLY, TIME),
        (TOO_LATE, TIME),
        ([TOO_LATE], pa.list_(TIME)),
        ([("a", TOO_EARLY)], pa.map_(pa.string(), TIME)),
        ({"x": [{"y": TOO_LATE}]}, pa.struct([("x", pa.list_(pa.struct([("y", TIME)])))])),
    ],
)
def test_a_time_that_no_reader_would_get_back_is_refused(value: Any, kind: pa.DataType) -> None:
    table = made("COPY_ON_WRITE")
    with pytest.raises(Invalid, match=r"'at': expected times between 1677-09-22 and 2262-04-11, found '(1677|2262)-"):
        table.insert(rows([None, value], kind))
    assert not [instant for instant in table.timeline() if instant.completed and instant.action == "commit"]


def test_a_log_takes_no_time_that_a_compaction_could_not_store() -> None:
    table = made("MERGE_ON_READ")
    table.insert(rows([LEAST], TIME))
    with pytest.raises(Invalid, match="'at': expected times between"):
        table.upsert(rows([TOO_EARLY], TIME))
    table.upsert(rows([GREATEST], TIME))
    assert table.compact().file_groups
    assert table.scan(columns=["at"]).to_arrow().column("at").cast(pa.timestamp("us")).to_pylist() == [GREATEST]
