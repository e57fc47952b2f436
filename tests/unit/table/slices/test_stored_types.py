"""A reader that does not convert types itself could be given a file in another type than it was told."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.local import LocalStorage
from pyhudi.table.slices.stored_types import group_by_stored_types, stored_types
from pyhudi.testing.counting import CountingStorage

WANTED = pa.schema(
    [
        ("n", pa.int64()),
        ("s", pa.struct([("a", pa.float64()), ("b", pa.string())])),
        ("l", pa.list_(pa.field("element", pa.int64()))),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
    ]
)


def changed(name: str, kind: pa.DataType) -> pa.Schema:
    return WANTED.set(WANTED.get_field_index(name), pa.field(name, kind))


@pytest.mark.parametrize(
    "name,found,stored",
    [
        ("n", pa.int32(), pa.int32()),
        ("s", pa.struct([("a", pa.float32())]), pa.struct([("a", pa.float32())])),
        ("s", pa.struct([("b", pa.string())]), pa.struct([("b", pa.string())])),
        ("s", pa.struct([("gone", pa.string())]), WANTED.field("s").type),
        ("l", pa.list_(pa.field("array", pa.int32())), pa.list_(pa.field("element", pa.int32()))),
        ("l", pa.list_(pa.field("array", pa.int64(), False)), WANTED.field("l").type),
        ("m", pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int32())),
        ("at", pa.timestamp("ns"), pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(8, 2), pa.decimal128(8, 2)),
    ],
    ids=str,
)
def test_types_that_are_converted_are_those_of_the_file(name: str, found: pa.DataType, stored: pa.DataType) -> None:
    assert stored_types(changed(name, found), WANTED) == changed(name, stored)


def test_a_column_that_the_file_lacks_is_the_wanted_one_and_others_are_left_out() -> None:
    assert stored_types(pa.schema([("other", pa.int32()), ("n", pa.int64())]), WANTED) == WANTED


def test_files_are_grouped_by_one_footer_for_each_instant(tmp_path: Path) -> None:
    files = []
    for instant, kind in (("001", pa.int32()), ("002", pa.int64()), ("003", pa.int32())):
        for group in "ab":
            name = f"{group}-0_0-0-0_{instant}.parquet"
            pq.write_table(pa.table({"n": pa.array([1], kind)}), tmp_path / name)
            files.append((name, 1))
    storage = CountingStorage(LocalStorage(str(tmp_path)))

    groups = group_by_stored_types(storage, files, pa.schema([("n", pa.int64())]), SerialExecutor())

    assert [(group.schema.field("n").type, len(group.files)) for group in groups] == [(pa.int64(), 2), (pa.int32(), 4)]
    assert {file for group in groups for file in group.files} == set(files)
    assert storage.counts == {"open_input": 3}


def test_no_files_give_no_groups(tmp_path: Path) -> None:
    assert group_by_stored_types(LocalStorage(str(tmp_path)), [], WANTED, SerialExecutor()) == []
