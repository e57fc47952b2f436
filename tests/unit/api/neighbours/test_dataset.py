"""A Dataset over a table could read files that its filter rules out, lose rows, or reach for files that are none."""

import threading
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from pyhudi import HudiTable, Invalid, Unsupported, scan_dataset
from pyhudi.storage.memory import MemoryStorage
from tests.unit.api.neighbours.conftest import Read


@pytest.mark.parametrize(
    "filter, partitions",
    [
        (pc.field("city") == "oslo", ["oslo"]),
        (pc.field("id") == "k000", ["rome"]),
        (pc.field("id").isin(["k000", "k003"]) & (pc.utf8_length(pc.field("s")) < 9), ["rome"]),
        (pc.field("i64") < 9, ["oslo", "rome"]),
    ],
    ids=["partition", "key", "keys beside what only Arrow knows", "all"],
)
def test_slices_that_a_filter_rules_out_are_not_read(
    table: HudiTable, read: Read, filter: Any, partitions: list[str]
) -> None:
    dataset, collected = table.scan().to_dataset(), pa.table(table.scan())
    read.partitions.clear()
    found = dataset.to_table(columns=["id", "i32"], filter=filter)
    assert found.sort_by("id") == collected.filter(filter).select(["id", "i32"]).sort_by("id")
    assert read.partitions == partitions


def test_a_dataset_gives_columns_expressions_and_numbers_of_rows(table: HudiTable) -> None:
    dataset = table.scan(meta_fields=False).to_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema == table.scan(meta_fields=False).schema
    assert dataset.count_rows() == 140
    assert dataset.count_rows(filter=pc.field("i32") == 7) == 30
    assert dataset.head(3, columns=["id", "s"]).shape == (3, 2)
    doubled = {"twice": pc.field("i32") * 2}
    assert dataset.to_table(columns=doubled, filter=pc.field("i32") == 7)["twice"].to_pylist() == [14] * 30
    assert sum(map(len, dataset.to_batches(columns=["bo"]))) == 140
    with pytest.raises(Invalid, match="none"):
        dataset.to_table(columns=["none"])
    assert len(table.scan().limit(5).to_dataset().to_table()) == 5


@pytest.mark.parametrize("call", ["get_fragments", "filter", "join", "sort_by", "replace_schema"])
def test_calls_that_need_files_are_refused(table: HudiTable, call: str) -> None:
    with pytest.raises(Unsupported, match=f"Dataset.{call}"):
        getattr(table.scan().to_dataset(), call)("id")


def test_batches_are_read_in_the_thread_that_takes_them(table: HudiTable, read: Read) -> None:
    """Threads of Arrow that wait for Python at the end of a process would keep it from ending."""
    dataset = table.scan().to_dataset()
    assert len(dataset.scanner(columns=["id"]).to_reader().read_next_batch()) > 0
    assert len(dataset.head(2)) == 2
    assert read.partitions == ["oslo", "oslo"]
    assert read.threads == {threading.get_ident()}


def test_scan_dataset_opens_a_table_by_its_path(tmp_path: Any) -> None:
    HudiTable.create(str(tmp_path / "t"), name="t", record_key="id").bulk_insert(pa.table({"id": ["a"], "n": [1]}))
    assert scan_dataset(tmp_path / "t", columns=["n"]).to_table().to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("partition_by", [None, "day"])
def test_days_beyond_the_years_of_python_are_found(partition_by: str | None) -> None:
    days = pa.array([2**31 - 1, 0], pa.int32()).view(pa.date32())
    made = HudiTable.create("unused", name="t", record_key="id", partition_by=partition_by, storage=MemoryStorage())
    made.insert(pa.table({"id": ["a", "b"], "day": days}))
    assert made.scan().to_dataset().to_table(filter=pc.field("day").isin(days[:1]))["id"].to_pylist() == ["a"]
