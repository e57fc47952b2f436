"""A row could get the columns of another row, where skeleton and source are cut into other row groups."""

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.slices.base_files.rows import AsWritten, open_rows, read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.view.file_system_view import SourceFile

ROWS = 1_000
SKELETON = "day=2026-01-02/0f0f0f0f-0000-0000-0000-000000000000_0-1-2_00000000000001.parquet"
META = pa.table({"_hoodie_record_key": [f"k{n}" for n in range(ROWS)], "_hoodie_file_name": ["f"] * ROWS})
DATA = pa.table({"n": range(ROWS), "text": [str(n % 7) for n in range(ROWS)]})
BY_DAY = AsWritten(
    paths=KeySpec(record_key=("id",), partition_by=("day",), is_composite=False, is_hive_style=True,
                  is_url_encoded=False, time_based=(), has_logical_timestamps=False)
)  # fmt: skip


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    with storage.put_stream(SKELETON) as sink:
        pq.write_table(META, sink, row_group_size=300)
    return storage


def with_source(storage: MemoryStorage, data: pa.Table = DATA, row_group_size: int = 170) -> SourceFile:
    with storage.put_stream("source/part-0") as sink:
        pq.write_table(data, sink, row_group_size=row_group_size)
    return SourceFile(storage.location, "source/part-0", len(storage.get("source/part-0")))


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 65_536])
@pytest.mark.parametrize("groups", [None, [0], [5], [1, 4]])
def test_rows_go_by_their_position(storage: MemoryStorage, batch_rows: int, groups: list[int] | None) -> None:
    file = open_rows(storage, SKELETON, with_source(storage), BY_DAY)
    assert file.row_count == ROWS
    assert list(file.group_rows) == [170] * 5 + [150]

    for columns in (["text", "_hoodie_record_key", "n"], ["_hoodie_record_key"], ["n"], ["day", "n"], ["day"]):
        batches = list(file.batches(columns, groups=groups, batch_rows=batch_rows))
        rows = pa.Table.from_batches(batches)
        chosen = range(6) if groups is None else groups
        every = pa.table([*META.columns, *DATA.columns], names=[*META.column_names, *DATA.column_names])
        expected = pa.concat_tables([every.slice(170 * group, 170) for group in chosen])
        assert rows.column_names == columns
        assert rows.num_rows == expected.num_rows
        for name in columns:
            found = rows.column(name).to_pylist()
            assert found == (["2026-01-02"] * len(found) if name == "day" else expected.column(name).to_pylist())


def test_statistics_are_those_of_the_source(storage: MemoryStorage) -> None:
    file = open_rows(storage, SKELETON, with_source(storage), BY_DAY)
    facts = file.chunk(1, "n")
    assert facts is not None
    assert facts.bounds == (170, 339)
    assert file.chunk(0, "_hoodie_record_key") is None  # its groups are others
    assert file.chunk(0, "day") is None


def test_a_column_of_the_source_wins_over_the_path(storage: MemoryStorage) -> None:
    source = with_source(storage, DATA.append_column("day", pa.array(["own"] * ROWS)))
    (batch, *_) = read_stored_batches(
        storage, SKELETON, ["day", "absent"], use_threads=False, source=source, as_written=BY_DAY
    )
    assert batch.schema.names == ["day"]
    assert batch.column("day")[0].as_py() == "own"


@pytest.mark.parametrize(
    "folder, text",
    [("day=1%3A30", "1:30"), ("plain", "plain"), ("day=__HIVE_DEFAULT_PARTITION__", None), ("day=a%25", "a%")],
)
def test_folders_of_a_source_are_spelled_as_spark_spells_them(folder: str, text: str | None) -> None:
    assert BY_DAY.paths is not None
    keys = AsWritten(paths=replace(BY_DAY.paths, is_hive_style=False))
    assert keys.texts_of(folder, ["id"], has_source=True) == {"day": text}


def test_a_source_that_changed_is_refused(storage: MemoryStorage) -> None:
    source = with_source(storage, DATA.slice(1))
    with pytest.raises(CorruptFile, match="expected 999 rows, as its source source/part-0 has, found 1,000"):
        open_rows(storage, SKELETON, source)


def test_a_source_of_another_size_is_refused_though_it_has_as_many_rows(storage: MemoryStorage) -> None:
    then = with_source(storage)
    with_source(storage, DATA.set_column(1, "text", pa.array([f"other {n}" for n in range(ROWS)])))
    with pytest.raises(CorruptFile, match=r"source/part-0 .*bytes that it had when the table was bootstrapped"):
        open_rows(storage, SKELETON, then)


def test_a_source_has_the_format_of_its_skeleton() -> None:
    storage, name = MemoryStorage(), SKELETON.replace(".parquet", ".orc")
    for path, rows in ((name, META), ("source/000000_0", DATA)):
        with storage.put_stream(path) as sink:
            orc.write_table(rows, sink)
    file = open_rows(storage, name, SourceFile(storage.location, "source/000000_0", 0))
    assert file.read(["n", "_hoodie_record_key"]).slice(500, 1).to_pylist() == [
        {"n": 500, "_hoodie_record_key": "k500"}
    ]


def test_dropped_partition_columns_stand_in_for_nulls(storage: MemoryStorage) -> None:
    dropped = AsWritten(paths=BY_DAY.paths, drops_columns=True)
    path = "day=2026-01-02/a-0_0-1-2_20260101000000000.parquet"
    for stored, expected in ((None, "2026-01-02"), ("own", "own")):
        with storage.put_stream(path) as sink:
            pq.write_table(DATA.append_column("day", pa.array([stored] * ROWS, pa.string())), sink)
        file = open_rows(storage, path, None, dropped)
        assert set(file.read(["day"]).column("day").to_pylist()) == {expected}
        assert file.chunk(0, "day") is None


def test_an_encrypted_footer_is_refused_by_name(storage: MemoryStorage) -> None:
    path = "a-0_0-1-2_20260101000000000.parquet"
    storage.put(path, b"PARE" + b"x" * 100 + (50).to_bytes(4, "little") + b"PARE")
    with pytest.raises(Unsupported, match=r"\.parquet: its footer is encrypted"):
        open_rows(storage, path)


def test_old_timestamps_of_any_year_are_read(storage: MemoryStorage) -> None:
    """INT96 counts nanoseconds of a day; nanoseconds since 1970 would end in 2262."""
    path, moments = "a-0_0-1-2_20260101000000000.parquet", [datetime(3000, 1, 1, 12), datetime(1600, 2, 3), None]
    with storage.put_stream(path) as sink:
        rows = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
        pq.write_table(rows, sink, use_deprecated_int96_timestamps=True)
    (batch,) = read_stored_batches(storage, path, ["at"], use_threads=False)
    instants = conform_batch(batch, pa.schema([("at", pa.timestamp("us", "UTC"))]), path=path)
    assert instants.column("at").to_pylist() == [m and m.replace(tzinfo=UTC) for m in moments]
