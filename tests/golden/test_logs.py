"""A log that Apache Hudi wrote could be read with a block, a row or a delete missing, or ours be written otherwise.

Every log file of the golden tables is walked to its end; what its blocks hold is counted against the commits that
wrote them, and encoded again: byte for byte where the content alone decides.
"""

import shutil
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.format.log import headers
from pyhudi.format.log.block import BlockType, HeaderKey, LogBlock, encode_block
from pyhudi.format.log.data import ROW_TYPES, data_schema, read_batches, read_row_count
from pyhudi.format.log.delete import decode_delete_content, encode_delete_content, read_deletes
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.log.writer import encode_avro_block, encode_hfile_rows_block, encode_parquet_block
from pyhudi.format.names import LogFileName
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.snapshot import read_snapshot
from pyhudi.versions import LogContent
from tests.support.golden_tables import GoldenTable, GoldenTables, golden_names
from tests.support.hudi_rs import read_hudi_rs

NAMES = tuple(name for name in golden_names() if name.startswith(("mor_", "upgraded_mor_", "cow_cdc_")))
KEY = "_hoodie_record_key"


def log_files(table: GoldenTable) -> Iterator[tuple[str, bytes]]:
    """Every log file of a table, those of its metadata table too; archived instants are tested elsewhere."""
    for file in sorted(table.path.rglob(".*.log.*")):
        yield file.relative_to(table.path).as_posix(), file.read_bytes()


def blocks_of(content: bytes, path: str) -> list[LogBlock]:
    return list(scan_log(MemoryLog(content), len(content), path=path))


def rows_of(block: LogBlock, **options: int) -> pa.Table:
    return pa.Table.from_batches(read_batches(block, **options), data_schema(block))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_every_log_of_apache_hudi_is_read_whole(golden: GoldenTables, name: str) -> None:
    count = 0
    for path, content in log_files(golden.get(name)):
        parsed = LogFileName.parse(path.rpartition("/")[2])
        assert parsed is not None
        assert parsed.format() == path.rpartition("/")[2]
        blocks = blocks_of(content, path)
        assert sum(block.size for block in blocks) == len(content)
        assert [block for block in blocks if block.damage is not None] == []
        for block in blocks:
            check_block(block, content[block.offset : block.offset + block.size])
        if parsed.is_cdc:
            assert {block.type for block in blocks} == {BlockType.CDC_DATA}
        count += len(blocks)
    assert count > 0


def check_block(block: LogBlock, stored: bytes) -> None:
    assert headers.instant_time(block).isdigit()
    assert encode_block(block.type, block.header, block.read_content()) == stored
    match block.type:
        case BlockType.COMMAND:
            assert headers.rolled_back_instant(block).isdigit()
        case BlockType.DELETE:
            deletes = read_deletes(block)
            content = bytes(block.read_content())
            form = LogContent(int.from_bytes(content[:4]))
            again = encode_delete_content(deletes, form)
            # 0.13.1 stores the text of a partition with each delete; ours refer to the first one
            assert again == content or form is LogContent.JAVA
            assert decode_delete_content(again, path=block.path).equals(deletes)
            headers.record_positions(block, deletes.num_rows)
        case _:
            check_rows(block, stored)


def check_rows(block: LogBlock, stored: bytes) -> None:
    rows = rows_of(block)
    assert rows.num_rows == read_row_count(block)
    headers.record_positions(block, rows.num_rows)
    if block.type is BlockType.AVRO_DATA:
        form = LogContent(int.from_bytes(bytes(block.read_content())[:4]))
        assert encode_avro_block(rows.to_batches(), block.header, form=form) == stored
        assert rows_of(block, batch_size_bytes=100).equals(rows)
    if block.type is BlockType.HFILE_DATA and not block.path.startswith(".hoodie/"):  # of rows, not of metadata
        assert encode_hfile_rows_block(rows.to_batches(), block.header, key_column=KEY) == stored
    if block.type is BlockType.PARQUET_DATA:  # sizes of pages and the writer's name are Parquet's own affair
        made = encode_parquet_block(rows.to_batches(), block.header, compression="gzip")
        (again,) = blocks_of(made, block.path)
        assert rows_of(again).equals(rows)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("mor_", "upgraded_"))])
def test_logs_hold_as_many_rows_and_deletes_as_their_commits_say(golden: GoldenTables, name: str) -> None:
    table = golden.get(name)
    snapshot = read_snapshot(LocalStorage(str(table.path)), UTC, open_listing)
    writes = [i for i in snapshot.timeline.with_archived() if i.is_completed and "commit" in i.action]
    compared = 0
    for instant in writes:
        for stats in read_commit(snapshot.storage, snapshot.timeline, instant).partition_to_write_stats.values():
            for stat in stats:
                file = Path(table.path) / (stat.path or "")
                if ".log." not in file.name or not file.exists():  # cleaned since
                    continue
                blocks = blocks_of(file.read_bytes(), file.name)
                rows = sum(read_row_count(block) for block in blocks if block.type in ROW_TYPES)
                deletes = sum(read_deletes(block).num_rows for block in blocks if block.type is BlockType.DELETE)
                assert (rows, deletes) == (stat.num_writes, stat.num_deletes), stat.path
                compared += 1
    assert compared > 0


def encoded_again(block: LogBlock, *, as_parquet: bool) -> bytes:
    """A block of ours with the same header and rows or deletes."""
    if block.type is BlockType.DELETE:
        return encode_block(block.type, block.header, encode_delete_content(read_deletes(block)))
    if block.type not in ROW_TYPES:
        return encode_block(block.type, block.header, block.read_content())
    batches = read_batches(block)
    if as_parquet:
        return encode_parquet_block(batches, block.header, compression="zstd")
    return encode_avro_block(batches, block.header)


@pytest.mark.parametrize("as_parquet", [True, False], ids=["parquet", "avro"])
@pytest.mark.parametrize("name", [
    "mor_avro_v6_h0150", "mor_avro_v8_h102", "mor_avro_v9_h120", "mor_parquet_log_v6_h0150", "mor_parquet_log_v8_h102",
    "mor_parquet_log_v9_h120",
])  # fmt: skip
def test_a_second_reader_merges_our_blocks_as_those_of_apache_hudi(
    golden: GoldenTables, tmp_path: Path, name: str, as_parquet: bool
) -> None:
    """hudi-rs reads the table, and again with every data and delete block of it written by us."""
    path = tmp_path / "t"
    shutil.copytree(golden.get(name).path, path)
    before = read_hudi_rs(path).sort_by(KEY)
    written = 0
    for file in sorted(path.rglob(".*.log.*")):
        if ".hoodie" not in file.parts:
            blocks = blocks_of(file.read_bytes(), file.name)
            written += sum(block.type in ROW_TYPES for block in blocks)
            file.write_bytes(b"".join(encoded_again(block, as_parquet=as_parquet) for block in blocks))
    assert written >= 4
    assert before.num_rows == 64
    assert read_hudi_rs(path).sort_by(KEY).equals(before)


def test_the_tables_hold_blocks_of_every_kind(golden: GoldenTables) -> None:
    """Else the tests above would prove less than they say."""
    kinds, keys, partial, compacted = set(), set(), 0, 0
    for name in ("mor_nonpart_v9_h120", "mor_parquet_log_v9_h120", "mor_hfile_log_v6_h0150", "mor_rollback_v6_h0150",
                 "mor_cdc_compact_v9_h120", "mor_partial_update_v8_h102", "mor_log_compact_v9_h120"):  # fmt: skip
        for path, content in log_files(golden.get(name)):
            for block in blocks_of(content, path):
                kinds.add(block.type)
                keys |= set(block.header)
                partial += headers.is_partial(block)
                compacted += len(headers.compacted_instants(block)) > 1
    assert kinds == set(BlockType) - {BlockType.CORRUPT}
    assert keys == set(HeaderKey) - {HeaderKey.BLOCK_IDENTIFIER}
    assert partial
    assert compacted


def test_positions_are_rows_of_the_base_file(golden: GoldenTables) -> None:
    """The keys of a block stand in the base file at its positions."""
    table = golden.get("mor_avro_v9_h120")
    base_files = {(f.parent, f.name.split("_")[0], f.stem.split("_")[2]): f for f in table.path.rglob("*.parquet")}
    compared = 0
    for path, content in log_files(table):
        if path.startswith(".hoodie/"):
            continue
        name = LogFileName.parse(path.rpartition("/")[2])
        assert name is not None
        for block in blocks_of(content, path):
            deletes = block.type is BlockType.DELETE
            keys = read_deletes(block).column(0) if deletes else rows_of(block).column(KEY).combine_chunks()
            positions = headers.record_positions(block, len(keys))
            instant = headers.positions_base_instant(block)
            if positions is not None:
                base = base_files[(table.path / path).parent, name.file_id, str(instant)]
                stored = pq.read_table(base, columns=[KEY]).column(KEY)
                assert stored.take(pa.array(positions)).to_pylist() == keys.to_pylist()
                compared += 1
    assert compared > 3
