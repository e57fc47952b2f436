"""A block that other readers cannot take: here are the rules of blocks that pyhudi alone could do without."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.log.block import BlockType, HeaderKey, LogBlock
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.headers import instant_time, is_partial, positions_base_instant, record_positions
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog
from pyhudi.merge.fold import LogFold
from pyhudi.merge.rules import event_time
from pyhudi.write.handles.compaction import SliceTask
from pyhudi.write.handles.log_compaction import _deletes

MARK = "_hoodie_is_deleted"


def table_of(path: Path, rows: pa.Table) -> HudiTable:
    table = HudiTable.create(path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.bulk_insert(rows)
    return table


def blocks(path: Path) -> list[LogBlock]:
    """All blocks of the table's logs, those of the newest file last."""
    found: list[LogBlock] = []
    for file in sorted(path.glob(".*.log.*"), key=lambda file: file.name.partition("_")[2]):
        data = file.read_bytes()
        found += scan_log(MemoryLog(data), len(data), path=file.name)
    return found


def test_a_table_that_marks_deletes_by_a_column_takes_whole_rows_only(tmp_path: Path) -> None:
    whole = pa.table({"id": ["a", "b"], "ts": [1, 1], "v": ["old", "old"], MARK: pa.array([None, False])})
    table = table_of(tmp_path / "t", whole)

    with pytest.raises(
        Unsupported, match=rf"expected all columns in an upsert, as the table has '{MARK}', found '{MARK}' missing"
    ):
        table.upsert(whole.select(["id", "ts", "v"]))
    table.upsert(whole.select(["id", "ts", "v"]), options={"hoodie.write.set.null.for.missing.columns": True})

    assert not any(is_partial(block) for block in blocks(tmp_path / "t"))
    assert table.scan().to_arrow()[MARK].to_pylist() == [None, None]


def test_what_is_no_boolean_marks_no_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that others made may have such a column. Nobody writes into it."""
    whole = pa.table({"id": ["a"], "ts": [1], "v": ["old"], MARK: ["text"]})
    with monkeypatch.context() as others:
        others.setattr("pyhudi.api.creation.refuse_unread_mark", lambda schema: None)
        table = HudiTable.create(
            tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", schema=whole.schema
        )
    table.bulk_insert(whole.drop_columns([MARK]), options={"hoodie.write.set.null.for.missing.columns": True})
    with pytest.raises(Invalid, match=f"column '{MARK}' marks rows to delete: expected bool, found string"):
        table.upsert(whole)
    with pytest.raises(Invalid, match=f"column '{MARK}' marks rows to delete"):
        HudiTable.create(tmp_path / "u", name="u", schema=whole.schema)
    with pytest.raises(Invalid, match=f"column '{MARK}' marks rows to delete"):
        table_of(tmp_path / "v", whole.drop_columns([MARK])).alter().add(MARK, pa.int32()).commit()

    table.upsert(whole.select(["id", "ts", "v"]))

    (block,) = blocks(tmp_path / "t")
    (batch,) = read_batches(block)
    assert MARK not in batch.schema.names
    assert table.scan(columns=["id", MARK]).to_arrow().to_pylist() == [{"id": "a", MARK: None}]
    table.alter().rename(MARK, "text").commit()
    assert "text" in table.schema().names


def test_marks_may_be_encoded_as_any_boolean(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", pa.table({"id": ["a", "b"], "ts": [1, 1]}))
    marks = pa.array([True, False]).dictionary_encode()

    table.upsert(pa.table({"id": ["a", "b"], "ts": [2, 2], MARK: marks}))

    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == ["b"]


def test_deletes_with_and_without_ordering_value_are_in_blocks_of_their_own(tmp_path: Path) -> None:
    keys = pa.table({"id": ["a", "b", "c", "d"], "ts": [1, 1, 1, 1]})
    table = table_of(tmp_path / "t", keys)
    table.delete(keys.slice(1, 1).select(["id"]))
    table.delete(keys.slice(2, 2))

    assert table.log_compact(options={"hoodie.log.compaction.blocks.threshold": 1}).requested is not None

    found = [read_deletes(block) for block in blocks(tmp_path / "t")[-2:]]
    assert [of.column("record_key").to_pylist() for of in found] == [["b"], ["c", "d"]]
    assert [len(of.column("ordering_kind").unique()) for of in found] == [1, 1]
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == ["a"]


def test_a_log_compaction_makes_no_delete_without_ordering_value_of_one_that_has_another() -> None:
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64())])
    fold = LogFold(event_time(ordering=("ts",)), schema)
    task = SliceTask(number=0, partition="oslo", file_id="f1", base_instant="", base_file=None, logs=())
    fold.add_deletes(pa.array(["a"]), [pa.array([None], pa.int64())], is_commit_time=np.array([True]))
    assert _deletes(task, fold.finish()).rows.num_rows == 1
    fold.add_deletes(pa.array(["b"]), [pa.array([None], pa.int64())], is_commit_time=np.array([False]))
    with pytest.raises(Unsupported, match="log of 'oslo/f1': a delete whose ordering value is of another class"):
        _deletes(task, fold.finish())


@pytest.mark.parametrize("kind", ["parquet", "avro"])  # rows of HFile blocks are in the order of their keys
@pytest.mark.parametrize("rows_a_block", [100, 3])
def test_rows_and_deletes_say_where_in_the_base_file_their_rows_stand(
    tmp_path: Path, kind: str, rows_a_block: int
) -> None:
    ids = [f"{n:04}" for n in range(50)]
    rows = pa.table({"id": ids, "ts": [1] * 50, "v": ["x" * 1_000] * 50})
    table = table_of(tmp_path / "t", rows)
    base = pq.read_table(next((tmp_path / "t").glob("*.parquet")), columns=["_hoodie_record_key"])
    place = {key: at for at, key in enumerate(base.column(0).to_pylist())}
    options = {"hoodie.logfile.data.block.format": kind, "hoodie.logfile.data.block.max.size": 1_100 * rows_a_block}

    table.upsert(rows.take([41, 7, 30, 8, 9]), options=options)
    table.delete(rows.take([49, 0, 20]).select(["id"]), options=options)

    (base_instant,) = {i.requested for i in table.timeline() if i.action == "deltacommit"} - {
        instant_time(block) for block in blocks(tmp_path / "t")
    }
    found: list[str] = []
    for block in blocks(tmp_path / "t"):
        keys = keys_of(block)
        positions = record_positions(block, len(keys))
        assert positions is not None
        assert positions.tolist() == [place[key] for key in keys]
        assert positions_base_instant(block) == base_instant
        said = block.header[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS]
        is_parquet = block.type is BlockType.PARQUET_DATA
        assert said == (f"pyhudi:{base_instant}" if is_parquet else base_instant)
        found += keys
    assert sorted(found) == ["0000", "0007", "0008", "0009", "0020", "0030", "0041", "0049"]
    assert len(blocks(tmp_path / "t")) == (2 if rows_a_block == 100 else 3)


def test_blocks_with_a_new_key_have_no_positions(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "ts": [1, 1]})
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ",
        properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 1},
    )  # fmt: skip
    table.insert(rows.slice(0, 1))
    table.upsert(rows)

    (block,) = blocks(tmp_path / "t")
    assert record_positions(block, 2) is None
    assert positions_base_instant(block) is None


def test_positions_can_be_left_out(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "ts": [1, 1]})
    table = table_of(tmp_path / "t", rows)
    table.upsert(rows, options={"hoodie.write.record.positions": "false"})

    (block,) = blocks(tmp_path / "t")
    assert record_positions(block, 2) is None


def keys_of(block: LogBlock) -> list[str]:
    if block.type is BlockType.DELETE:
        return [str(key) for key in read_deletes(block).column("record_key").to_pylist()]
    return [str(key) for batch in read_batches(block) for key in batch.column("_hoodie_record_key").to_pylist()]


@pytest.mark.parametrize(
    "rows, codec, compression",
    [(10, None, "SNAPPY"), (5_000, None, "ZSTD"), (10, "gzip", "GZIP"), (10, "zstd", "ZSTD")],
)
def test_small_blocks_are_compressed_by_what_is_quick_unless_a_codec_is_named(
    tmp_path: Path, rows: int, codec: str | None, compression: str
) -> None:
    whole = pa.table({"id": [f"{n:05}" for n in range(rows)], "ts": [1] * rows})
    table = table_of(tmp_path / "t", whole)

    options = {"hoodie.logfile.data.block.format": "parquet"}
    table.upsert(whole, options=options if codec is None else {**options, "hoodie.parquet.compression.codec": codec})

    (block,) = blocks(tmp_path / "t")
    footer = pq.ParquetFile(pa.BufferReader(block.read_content())).metadata
    assert footer.row_group(0).column(0).compression == compression


@pytest.mark.parametrize("rows, kind", [(10, BlockType.AVRO_DATA), (5_000, BlockType.PARQUET_DATA)])
def test_small_blocks_are_avro_unless_a_format_is_named(tmp_path: Path, rows: int, kind: BlockType) -> None:
    """Opening a Parquet block takes as long as decoding a thousand rows of Avro."""
    whole = pa.table({"id": [f"{n:05}" for n in range(rows)], "ts": [1] * rows})
    table = table_of(tmp_path / "t", whole)

    table.upsert(whole)

    (block,) = blocks(tmp_path / "t")
    assert block.type is kind
    assert table.scan().to_arrow().num_rows == rows
