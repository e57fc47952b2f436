"""A write could hold all of a stream in memory; or lose, double or misplace rows on their way through files.

The same operations run over a table in memory and over a stream that does not fit the memory allowed, and must leave
the same rows, and no file behind, also where the input fails.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.staged_rows import StagedFile, stage_rows
from pyhudi.errors import Invalid, Unavailable
from pyhudi.services.after_commit import run_after_turn
from pyhudi.write.memory_settings import MEMORY_MAX, SPILL_FOLDER, MemorySettings

ROWS = 4_000
BUCKETS = {
    "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3", "hoodie.bucket.index.hash.field": "id",
}  # fmt: skip
LAYOUTS = {"flat": ((), {}), "partitioned": (("part",), {}), "bucket": (("part",), BUCKETS)}


@pytest.fixture(autouse=True)
def staged(monkeypatch: pytest.MonkeyPatch) -> list[StagedFile]:
    """The files that rows went to."""
    files: list[StagedFile] = []

    def noted(*given: object, **named: object) -> StagedFile:
        files.append(stage_rows(*given, **named))  # type: ignore[arg-type]
        return files[-1]

    monkeypatch.setattr("pyhudi.engine.local.arrow_source.stage_rows", noted)
    return files


@pytest.fixture
def small(tmp_path: Path) -> dict[str, object]:
    """Options by which the rows of these tests do not fit."""
    folder = tmp_path / "spill"
    folder.mkdir()
    return {MEMORY_MAX: 1_048_576, SPILL_FOLDER: str(folder)}


def rows(start: int, stop: int, *, ts: int, step: int = 1) -> pa.Table:
    """Keys out of order, partitions in turns, and some keys twice."""
    numbers = np.random.default_rng(stop).permutation(np.arange(start, stop, step))
    numbers = np.concatenate([numbers, numbers[:50]])
    return pa.table(
        {
            "id": np.char.add("k", numbers.astype(str)),
            "part": np.char.add("p", (numbers % 3).astype(str)),
            "ts": np.full(len(numbers), ts) + (np.arange(len(numbers)) % 2),
            "text": np.char.add("x" * 150, (np.arange(len(numbers)) * ts).astype(str)),
        }
    )


def stream(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=500))


def stored(table: HudiTable) -> list[tuple[object, ...]]:
    found = table.scan(columns=["_hoodie_record_key", "_hoodie_partition_path", "ts", "text"]).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def spills(options: dict[str, object]) -> list[Path]:
    return list(Path(str(options[SPILL_FOLDER])).iterdir())


def make(path: Path, layout: str, table_type: str) -> HudiTable:
    partition_by, properties = LAYOUTS[layout]
    return HudiTable.create(
        path, name="t", record_key="id", partition_by=partition_by, ordering="ts", table_type=table_type,
        properties=properties,
    )  # fmt: skip


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_operation_leaves_the_rows_that_it_leaves_from_memory(
    tmp_path: Path, small: dict[str, object], staged: list[StagedFile], layout: str, table_type: str
) -> None:
    in_memory, in_files = (make(tmp_path / name, layout, table_type) for name in ("memory", "files"))
    keys = rows(ROWS // 2, 20 * ROWS, ts=9, step=2)  # a delete carries few columns, so that it takes more rows
    steps = [
        ("bulk_insert", rows(0, ROWS, ts=1)),
        ("upsert", rows(0, 2 * ROWS, ts=2, step=2)),
        ("insert", rows(2 * ROWS, 3 * ROWS, ts=3)),
        ("delete", keys),
        ("insert_overwrite", rows(ROWS, 2 * ROWS, ts=4)),
        ("insert_overwrite_table", rows(0, ROWS, ts=5)),
    ]
    for number, (operation, given) in enumerate(steps):
        one = getattr(in_memory, operation)(given)
        assert len(staged) == number
        other = getattr(in_files, operation)(stream(given), options=small)

        assert len(staged) == number + 1
        assert (one.inserted, one.updated, one.deleted) == (other.inserted, other.updated, other.deleted)
        assert stored(in_memory) == stored(in_files), operation
        assert spills(small) == []


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
        {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT", "hoodie.combine.before.insert": "true"},
        {"hoodie.parquet.max.file.size": "100000"},
    ],
    ids=["by key", "by key, one a key", "many files"],
)
def test_a_bulk_insert_lays_rows_as_from_memory(
    tmp_path: Path, small: dict[str, object], staged: list[StagedFile], options: dict[str, object]
) -> None:
    in_memory, in_files = (make(tmp_path / name, "partitioned", "COPY_ON_WRITE") for name in ("memory", "files"))
    given = rows(0, ROWS, ts=1)

    in_memory.bulk_insert(given, options=options)
    in_files.bulk_insert(stream(given), options={**options, **small})

    assert len(staged) == 1
    columns = ["_hoodie_partition_path", "id", "ts", "text"]
    one, other = (table.scan(columns=columns).to_arrow() for table in (in_memory, in_files))
    for part in ("p0", "p1", "p2"):
        of = [table.filter(pa.compute.equal(table["_hoodie_partition_path"], part)) for table in (one, other)]
        if "hoodie.combine.before.insert" not in options and "hoodie.parquet.max.file.size" not in options:
            assert of[0].to_pylist() == of[1].to_pylist()
        else:
            assert sorted(of[0].to_pylist(), key=str) == sorted(of[1].to_pylist(), key=str)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_keys_that_move_between_partitions_are_settled_as_from_memory(
    tmp_path: Path, small: dict[str, object], staged: list[StagedFile], table_type: str
) -> None:
    """The greatest row of a key counts, and on a tie the last to arrive, in whichever partition the rows lie."""
    in_memory, in_files = (make(tmp_path / name, "partitioned", table_type) for name in ("memory", "files"))
    changed = rows(0, ROWS, ts=2)
    moving = changed.set_column(1, "part", pa.array(np.char.add("p", (np.arange(len(changed)) % 4).astype(str))))
    moving = pa.concat_tables([moving, changed])
    options = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    for table in (in_memory, in_files):
        table.bulk_insert(rows(0, ROWS, ts=1).slice(0, ROWS))

    in_memory.upsert(moving, options=options)
    in_files.upsert(stream(moving), options={**options, **small})

    assert len(staged) == 1
    assert stored(in_memory) == stored(in_files)


def test_keys_that_the_writer_makes_up_are_those_from_memory(tmp_path: Path, small: dict[str, object]) -> None:
    given = rows(0, ROWS, ts=1)
    tables = [HudiTable.create(tmp_path / name, name="t", partition_by="part") for name in ("memory", "files")]

    results = [tables[0].bulk_insert(given), tables[1].bulk_insert(stream(given), options=small)]

    one, other = (
        [(key.removeprefix(str(result.requested)), *rest) for key, *rest in stored(table)]  # type: ignore[attr-defined]
        for table, result in zip(tables, results, strict=True)
    )
    assert one == other


def test_duplicates_are_dropped_as_from_memory(tmp_path: Path, small: dict[str, object]) -> None:
    given, options = rows(0, ROWS, ts=2), {"hoodie.datasource.insert.dup.policy": "drop"}
    in_memory, in_files = (make(tmp_path / name, "partitioned", "COPY_ON_WRITE") for name in ("memory", "files"))
    for table in (in_memory, in_files):
        table.bulk_insert(rows(0, ROWS // 2, ts=1))

    in_memory.insert(given, options=options)
    in_files.insert(stream(given), options={**options, **small})
    assert stored(in_memory) == stored(in_files)

    with pytest.raises(Invalid, match=r"found 4,000 that are stored already"):
        in_files.insert(stream(given), options={"hoodie.datasource.insert.dup.policy": "fail", **small})
    assert spills(small) == []


def test_types_are_those_of_the_table_and_dictionaries_count_as_what_they_say(
    tmp_path: Path, small: dict[str, object], staged: list[StagedFile]
) -> None:
    """A dictionary of one long text is small, the column that is stored is not."""
    given = rows(0, ROWS, ts=1)
    coded = pa.array(["y" * 300] * len(given)).dictionary_encode()
    given = given.set_column(3, "text", coded).append_column("n", pa.array(range(len(given)), pa.int32()))
    assert given.nbytes < 524_288
    table = make(tmp_path / "t", "partitioned", "COPY_ON_WRITE")
    table.bulk_insert(pa.table({**{name: given[name].slice(0, 1) for name in given.column_names[:4]}, "n": [1 << 40]}))

    table.bulk_insert(stream(given), options=small)

    assert len(staged) == 1
    found = table.scan(columns=["n", "text"]).to_arrow().sort_by("n").slice(0, len(given))
    assert found["n"].to_pylist() == list(range(len(given)))
    assert found["n"].type == pa.int64()
    assert set(found["text"].to_pylist()) == {"y" * 300}


def test_a_single_batch_that_does_not_fit_is_cut(
    tmp_path: Path, small: dict[str, object], staged: list[StagedFile]
) -> None:
    table, given = make(tmp_path / "t", "partitioned", "COPY_ON_WRITE"), rows(0, ROWS, ts=1).combine_chunks()
    assert len(given.to_batches()) == 1

    result = table.bulk_insert(given.to_reader(), options=small)

    assert (len(staged), result.inserted) == (1, len(given))
    found = table.scan(columns=given.column_names).to_arrow()
    assert sorted(found.to_pylist(), key=str) == sorted(given.to_pylist(), key=str)


def test_small_streams_and_tables_of_the_caller_stay_in_memory(tmp_path: Path, staged: list[StagedFile]) -> None:
    table = make(tmp_path / "t", "partitioned", "COPY_ON_WRITE")

    table.bulk_insert(rows(0, ROWS, ts=1), options={MEMORY_MAX: 1_048_576})
    table.upsert(stream(rows(0, 100, ts=2)), options={MEMORY_MAX: 1_048_576})
    table.upsert(stream(rows(0, ROWS, ts=2)))

    assert staged == []


def test_the_rows_are_let_go_before_a_compaction_that_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path / "t", "flat", "MERGE_ON_READ")
    table.upsert(rows(0, 10, ts=1))
    held: list[int] = []
    sizes: list[int] = []

    def noted(*given: object) -> None:
        held.append(pa.total_allocated_bytes())
        run_after_turn(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("pyhudi.api.writes.run_after_turn", noted)

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(20):
            for batch in rows(number * ROWS, (number + 1) * ROWS, ts=2).to_batches():
                sizes.append(batch.nbytes)
                yield batch

    schema = rows(0, 10, ts=1).schema
    before = pa.total_allocated_bytes()
    table.upsert(pa.RecordBatchReader.from_batches(schema, batches()))

    assert len(held) == 1
    assert held[0] - before < sum(sizes) // 2


def failing(table: pa.Table, error: Exception) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=500)
        raise error

    return pa.RecordBatchReader.from_batches(table.schema, batches())


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_input_that_fails_midway_leaves_table_and_folder_as_they_were(
    tmp_path: Path, small: dict[str, object], operation: str
) -> None:
    table = make(tmp_path / "t", "partitioned", "COPY_ON_WRITE")
    table.bulk_insert(rows(0, 100, ts=1))
    before, files = stored(table), sorted(path for path in (tmp_path / "t").rglob("*") if path.suffix != ".crc")

    with pytest.raises(
        Invalid, match=r"input could not be read to its end, and nothing was written: .*the source is gone"
    ):
        getattr(table, operation)(failing(rows(0, ROWS, ts=2), ValueError("the source is gone")), options=small)

    assert spills(small) == []
    assert stored(table) == before
    assert files == sorted(path for path in (tmp_path / "t").rglob("*") if path.suffix != ".crc")


def with_null(table: pa.Table, name: str, at: int) -> pa.Table:
    values = table[name].to_pylist()
    values[at] = None
    return table.set_column(table.column_names.index(name), name, pa.array(values, table.schema.field(name).type))


@pytest.mark.parametrize(
    "given, message",
    [
        (with_null(rows(0, ROWS, ts=1), "id", ROWS - 1), r"found 1 null or empty; one row has {'id': None}"),
        (with_null(rows(0, ROWS, ts=1), "ts", ROWS - 1), r"ordering column 'ts'.* found 1 null"),
        (
            rows(0, ROWS, ts=1).set_column(1, "part", pa.array(["p"] * (ROWS + 49) + ["../p"])),
            r"\.\./p",
        ),
    ],
    ids=["key", "ordering", "path"],
)
def test_bad_rows_are_refused_before_anything_is_written(
    tmp_path: Path, small: dict[str, object], given: pa.Table, message: str
) -> None:
    table = make(tmp_path / "t", "partitioned", "COPY_ON_WRITE")

    with pytest.raises(Invalid, match=message):
        table.upsert(stream(given), options=small)

    assert spills(small) == []
    assert not any(path.suffix == ".parquet" for path in (tmp_path / "t").rglob("*"))


def test_a_disk_that_is_full_is_told_and_leaves_no_files(
    tmp_path: Path, small: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    table = make(tmp_path / "t", "partitioned", "COPY_ON_WRITE")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        with pytest.raises(Unavailable, match=r"cannot put rows aside.*make room there.*pyhudi.memory.spill.folder"):
            table.bulk_insert(stream(rows(0, ROWS, ts=1)), options=small)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert spills(small) == []


@pytest.mark.parametrize("gone", ["rows.arrow", "rows.arrow.runs"])
def test_files_that_others_delete_are_told_before_anything_is_written(
    tmp_path: Path, small: dict[str, object], monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    def lost(path: str, *given: object, **named: object) -> StagedFile:
        found = stage_rows(path, *given, **named)  # type: ignore[arg-type]
        Path(path).with_name(gone).unlink()
        return found

    monkeypatch.setattr("pyhudi.engine.local.arrow_source.stage_rows", lost)
    table = make(tmp_path / "t", "flat", "COPY_ON_WRITE")

    with pytest.raises(Unavailable, match=rf"{gone}: cannot read rows that were put aside"):
        table.bulk_insert(stream(rows(0, ROWS, ts=1)), options=small)

    assert spills(small) == []
    assert len(table.timeline()) == 0


def test_a_schema_that_changes_meanwhile_is_followed_from_the_files(
    tmp_path: Path, small: dict[str, object], staged: list[StagedFile]
) -> None:
    """Another writer adds a column while the stream is read; the stream itself cannot be read again."""
    table = make(tmp_path / "t", "partitioned", "COPY_ON_WRITE")
    table.bulk_insert(rows(0, 10, ts=1).slice(0, 10))
    other = HudiTable.open(tmp_path / "t")
    given = rows(0, ROWS, ts=2)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from given.to_batches(max_chunksize=500)
        extra = rows(10, 20, ts=1).slice(0, 10)
        other.upsert(extra.append_column("more", pa.array(range(10))))

    options = {"hoodie.write.set.null.for.missing.columns": "true", **small}
    table.upsert(pa.RecordBatchReader.from_batches(given.schema, batches()), options=options)

    assert len(staged) == 2
    assert len(table.scan(columns=["id", "more"]).to_arrow()) == ROWS
    assert sum(row[2] in (2, 3) for row in stored(table)) == ROWS
    assert spills(small) == []


@pytest.mark.parametrize("text", ["0", "1048575", "1 GB", "-1"])
def test_a_bound_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"'pyhudi.memory.max.bytes'='.*': expected a whole number of at least 1,048,576"):
        MemorySettings.from_options({MEMORY_MAX: text})


def test_a_bound_that_is_too_large_is_told_the_largest() -> None:
    with pytest.raises(Invalid, match=r"of at least 1,048,576 and at most 9,223,372,036,854,775,807"):
        MemorySettings.from_options({MEMORY_MAX: str(10**30)})


def test_the_default_grows_with_the_threads() -> None:
    assert MemorySettings.from_options({}) == MemorySettings()
    assert MemorySettings().share_bytes(2) == 1 << 29
    assert MemorySettings().share_bytes(16) == 16 << 27
    assert MemorySettings.from_options({MEMORY_MAX: "2097152"}).share_bytes(16) == 1_048_576


def test_a_folder_that_is_none_is_refused_before_the_input_is_read(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "flat", "COPY_ON_WRITE")
    reader = failing(rows(0, 10, ts=1), AssertionError("it was read"))

    with pytest.raises(Invalid, match=r"'pyhudi.memory.spill.folder'='.*nowhere': expected a folder"):
        table.bulk_insert(reader, options={SPILL_FOLDER: str(tmp_path / "nowhere")})


def test_the_bound_is_the_process_own_and_no_table_has_a_say(tmp_path: Path, staged: list[StagedFile]) -> None:
    """Whoever wrote a table's properties must not say where the rows of this process go."""
    with pytest.raises(Invalid, match=r"'pyhudi.memory.spill.folder'='/x': it is of one process"):
        HudiTable.create(tmp_path / "u", name="u", record_key="id", properties={SPILL_FOLDER: "/x"})

    make(tmp_path / "t", "flat", "COPY_ON_WRITE")
    (other := tmp_path / "other").mkdir()
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "checksum" not in line]
    properties.write_text("\n".join([*kept, f"{SPILL_FOLDER}={other}/none", f"{MEMORY_MAX}=1048576", ""]))
    HudiTable.open(tmp_path / "t").bulk_insert(stream(rows(0, ROWS, ts=1)))
    assert staged == []

    opened = HudiTable.open(tmp_path / "t", options={MEMORY_MAX: "1048576"})
    opened.bulk_insert(stream(rows(0, ROWS, ts=1)))
    assert len(staged) == 1
