"""Archived instants are rows of Parquet files: their columns could hold anything."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import CorruptFile, HudiError, HudiTable

ARCHIVING = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
NO_TEXT = pa.array([b"\xff\xfe"], pa.binary())
COLUMNS = {
    "text that is no UTF-8": pa.Array.from_buffers(pa.string(), 1, NO_TEXT.buffers()),
    "numbers": pa.array([1]),
    "lists": pa.array([["x"]]),
    "structs": pa.array([{"x": 1}]),
    "floats": pa.array([float("nan")]),
}


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table and its file of archived instants."""
    path = tmp_path_factory.mktemp("archived") / "t"
    table = HudiTable.create(path, name="t", record_key="id", ordering="ts")
    for ts in range(12):
        table.upsert(pa.table({"id": ["a"], "ts": [ts]}))
    assert table.archive(options=ARCHIVING).archived
    (file,) = (path / ".hoodie/timeline/history").glob("*.parquet")
    return path, file


@pytest.mark.parametrize("what", COLUMNS)
@pytest.mark.parametrize("name", ["instantTime", "completionTime", "action", "metadata", "plan"])
def test_a_column_of_something_else_is_told(archived: tuple[Path, Path], name: str, what: str) -> None:
    path, file = archived
    before = file.read_bytes()
    rows = pq.read_table(file)
    column = pa.concat_arrays([COLUMNS[what]] * rows.num_rows)
    pq.write_table(rows.set_column(rows.schema.get_field_index(name), name, column), file)
    calls = (
        lambda: HudiTable.open(path).timeline(history=True),
        lambda: HudiTable.open(path).incremental("20200101000000").to_arrow(),
    )
    try:
        with pytest.raises(CorruptFile, match=file.name):
            calls[0]()
        with pytest.raises(HudiError):
            calls[1]()
    finally:
        file.write_bytes(before)

    for call in calls:
        call()


def test_a_log_in_a_table_that_says_to_have_none_is_told(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    for ts in range(2):
        table.upsert(pa.table({"id": ["a"], "ts": [ts]}))
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("MERGE_ON_READ", "COPY_ON_WRITE"))

    with pytest.raises(CorruptFile, match=r"\.log\..*expected no log that counts"):
        HudiTable.open(tmp_path / "t").scan().to_arrow()
