"""What we add to a table of Apache Hudi 0.15 could be no more than a table that pyhudi itself understands: a log under
a name that is taken, a command block that voids another write, an archive whose entries say something else.

Golden tables of version 6 are written to, compacted, rolled back and archived; where 0.15.0 has done the same thing
itself, what it wrote says what ours must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.format.avro.schema_files import metadata_record_schema, schema_of
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log.block import BlockType, HeaderKey, LogBlock
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.metadata.record import decode_files_record, encode_files_record
from pyhudi.format.metadata.stats import decode_column_stats
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.action_files import (
    decode_commit,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_commit_json,
)
from pyhudi.format.timeline.records import CommitMetadata, RollbackMetadata, WriteStat
from pyhudi.storage.local import LocalStorage
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, golden_names
from tests.support.metadata_indexes import index_cells, index_problems
from tests.support.model import cleaned_paths

REFUSED = ("no_meta", "scheduled", "customgen", "tsgen")
"""No meta fields, a pending clustering of every group, keys whose spelling the table does not store."""

COW = [
    name
    for name in golden_names()
    if name.startswith("cow_") and "_v6_" in name and not any(no in name for no in REFUSED)
]
MOR = "mor_avro_v6_h0150"
SCHEMA = metadata_record_schema(6)
NO_METADATA = {"hoodie.metadata.enable": "false"}


@pytest.mark.parametrize("name", COW)
def test_rows_after_writes_are_those_before_as_the_writes_change_them(tmp_path: Path, name: str) -> None:
    golden = GoldenTables(tmp_path).get(name)
    table = HudiTable.open(golden.path)
    before = table.scan().to_arrow()
    rows = before.drop_columns([n for n in before.column_names if n.startswith("_hoodie_")])
    table.upsert(rows.slice(0, 2))
    table.delete(rows.slice(2, 1).select([*dict.fromkeys([*table.record_key, *table.partition_by])]))
    after = table.scan(meta_fields=False).to_arrow()
    kept = [at for at in range(len(rows)) if at != 2]
    assert_same_rows(after.select(rows.column_names), rows.take(kept))
    assert_same_rows(HudiTable.open(golden.path, options=NO_METADATA).scan(meta_fields=False).to_arrow(), after)
    assert [i.action for i in table.timeline()[-2:]] == ["commit", "commit"]
    assert not (golden.path / ".hoodie" / "timeline").exists()


def test_a_log_takes_the_next_version_of_its_slice_and_says_what_it_lies_upon(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get(MOR)
    table = HudiTable.open(golden.path)
    theirs = newest_commit(golden.path, table)
    rows = table.scan(meta_fields=False).to_arrow()
    table.upsert(rows.filter([city == "p1" for city in rows.column("part").to_pylist()]))
    ours = newest_commit(golden.path, table)
    logs = [stat for stat in ours.partition_to_write_stats["p1"] if stat.is_log]
    before = next(stat for stat in theirs.partition_to_write_stats["p1"] if stat.is_log)
    stat = next(stat for stat in logs if stat.file_id == before.file_id)
    assert stat.log_version == 4
    assert (stat.prev_commit, stat.base_file, stat.log_offset) == (before.prev_commit, before.base_file, 0)
    assert stat.log_files is not None
    assert before.log_files is not None
    assert [version_of(name) for name in stat.log_files] == [1, 2, 3, 4]
    assert set(before.log_files) <= set(stat.log_files)


def test_logs_after_a_scheduled_compaction_are_called_after_it(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get("mor_compact_scheduled_v6_h0150")
    table = HudiTable.open(golden.path)
    scheduled = next(i.requested for i in table.timeline() if i.action == "compaction")
    before = table.scan(meta_fields=False).to_arrow()
    table.upsert(before.slice(0, 4))
    names = [LogFileName.parse(Path(stat.path or "").name) for stat in stats_of(golden.path, table)]
    assert {name.instant for name in names if name is not None} == {scheduled}
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), before)
    assert table.compact().requested is not None
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), before)
    assert_same_rows(HudiTable.open(golden.path, options=NO_METADATA).scan(meta_fields=False).to_arrow(), before)


@pytest.mark.parametrize("name", ["mor_inflight_v6_h0150", "mor_inflight_rolled_back_v6_h0150"])
def test_what_a_writer_of_theirs_left_is_voided_by_command_blocks(tmp_path: Path, name: str) -> None:
    """The second one was rolled back without its markers, and with that not at all: readers go on to pass it over."""
    golden = GoldenTables(tmp_path).get(name)
    table = HudiTable.open(golden.path)
    before = table.scan(meta_fields=False).to_arrow()
    dead = [i.requested for i in table.timeline() if i.completed is None and i.action == "deltacommit"]
    table.upsert(before.slice(0, 1))
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), before)
    assert_same_rows(HudiTable.open(golden.path, options=NO_METADATA).scan(meta_fields=False).to_arrow(), before)
    assert [i for i in table.timeline() if i.completed is None] == []
    if dead:
        assert {block.header[HeaderKey.TARGET_INSTANT_TIME] for block in command_blocks(golden.path)} == set(dead)


def test_a_rollback_says_what_0_15_says(tmp_path: Path) -> None:
    """As 0.15.0 rolled a delta commit back, file by file; here ours of the same shape."""
    golden = GoldenTables(tmp_path).get("mor_rollback_v6_h0150")
    theirs = rollback_of(golden.path)
    other = GoldenTables(tmp_path / "other").get("mor_inflight_v6_h0150")
    HudiTable.open(other.path).upsert(HudiTable.open(other.path).scan(meta_fields=False).to_arrow().slice(0, 1))
    ours = rollback_of(other.path)
    for of in (*theirs.partition_metadata.values(), *ours.partition_metadata.values()):
        blocks = [LogFileName.parse(Path(path).name) for path in of.rollback_log_files or {}]
        failed = [LogFileName.parse(Path(path).name) for path in of.log_files_from_failed_commit or {}]
        assert {name.write_token for name in blocks if name} <= {"1-0-1"}
        assert set((of.rollback_log_files or {}).values()) <= {105}
        for block in filter(None, blocks):
            voided = [name for name in filter(None, failed) if name.file_id == block.file_id]
            assert voided
            assert all((block.instant, block.version) > (name.instant, name.version) for name in voided)
    assert any(of.rollback_log_files for of in ours.partition_metadata.values())
    plan = next(other.path.glob(".hoodie/*.rollback.requested"))
    requests = decode_rollback_plan(plan.read_bytes(), path=str(plan)).rollback_requests
    assert all(r.file_id and r.latest_base_instant for r in requests if r.log_blocks_to_be_deleted)


def test_archived_entries_have_the_fields_of_theirs(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get("cow_clean_archive_v6_h0150")
    folder = golden.path / ".hoodie" / "archived"
    theirs = sorted(folder.iterdir(), key=lambda file: int(file.name.split(".")[3].split("_")[0]))
    block = next(iter(read_blocks(theirs[-1].read_bytes(), path=str(theirs[-1]))))
    schema = json.loads(block.header[HeaderKey.SCHEMA])
    ours = json.loads(schema_of("HoodieArchivedMetaEntry"))
    assert [of["name"] for of in schema["fields"]] == [of["name"] for of in ours["fields"]]

    table = HudiTable.open(golden.path)
    rows = table.scan(meta_fields=False).to_arrow()
    whole = [(i.requested, i.action) for i in table.timeline(history=True)]
    for _ in range(4):
        table.upsert(rows.slice(0, 1))
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    assert table.archive(options=few).archived
    ours = set(folder.iterdir()) - set(theirs)
    number = int(theirs[-1].name.split(".")[3].split("_")[0]) + 1
    assert {file.name for file in ours} >= {f".commits_.archive.{number}_1-0-1"}
    for file in ours:
        for block in read_blocks(file.read_bytes(), path=str(file)):
            assert block.type is BlockType.AVRO_DATA
            assert list(block.header) == [HeaderKey.SCHEMA]
    assert [(i.requested, i.action) for i in table.timeline(history=True)][: len(whole)] == whole
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), rows)


def test_commits_are_json_with_the_fields_of_theirs(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get(MOR)
    table = HudiTable.open(golden.path)
    file = golden.path / table._access.snapshot().timeline.layout.path(table.timeline()[-1])
    theirs = json.loads(file.read_text())
    ours = json.loads(encode_commit_json(decode_commit(file.read_bytes(), path=str(file))))
    assert list(ours) == list(theirs)
    for partition, stats in theirs["partitionToWriteStats"].items():
        for their, our in zip(stats, ours["partitionToWriteStats"][partition], strict=True):
            assert their.items() <= our.items()


def test_records_of_the_metadata_table_are_the_bytes_of_theirs(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get(MOR)
    table = HudiTable.open(golden.path)
    theirs = dict(metadata_records(golden.path))
    for (name, key), value in theirs.items():
        record = decode_files_record(value, SCHEMA)
        base_file = name if name.endswith(".hfile") else None
        assert encode_files_record(record, SCHEMA, base_file_name=base_file) == value, key

    table.upsert(table.scan(meta_fields=False).to_arrow().slice(0, 2))
    ours = {place: value for place, value in metadata_records(golden.path) if place not in theirs}
    assert ours
    for value in ours.values():
        assert encode_files_record(decode_files_record(value, SCHEMA), SCHEMA) == value


def test_indexes_that_version_6_does_not_have_are_refused(tmp_path: Path) -> None:
    table = HudiTable.open(GoldenTables(tmp_path).get(MOR).path)
    rows, timeline = table.scan(meta_fields=False).to_arrow(), table.timeline()
    stats, keys = "hoodie.metadata.index.column.stats.enable", "hoodie.metadata.record.level.index.enable"
    for options, named in (
        ({stats: "true", "hoodie.metadata.index.partition.stats.enable": "true"}, "partition_stats"),
        ({keys: "true"}, "partitioned record index"),
    ):
        with pytest.raises(Unsupported, match=f"{named}: tables of version 6 have none such"):
            table.upsert(rows, options=options)
    for kind in ("partition_stats", "partitioned_record_index"):
        with pytest.raises(Unsupported, match="tables of version 6 have none such"):
            table.build_index(kind)
    with pytest.raises(Invalid, match="do not store them, found ts"):
        table.build_index("column_stats", columns=["ts"])
    assert table.timeline() == timeline
    assert table.properties["hoodie.table.metadata.partitions"] == "files"


def test_indexes_of_theirs_get_logs_of_their_slices_and_records_like_theirs(tmp_path: Path) -> None:
    golden = GoldenTables(tmp_path).get("mor_mdt_all_v6_h0150")
    table, storage = HudiTable.open(golden.path), LocalStorage(str(golden.path))
    metadata = golden.path / ".hoodie" / "metadata"
    theirs = {path for path in metadata.rglob("*.log.*") if path.is_file()}
    table.upsert(table.scan(meta_fields=False).to_arrow().slice(0, 2))
    new = set(metadata.rglob("*.log.*")) - theirs
    logs = {path.parent.name: log for path in new if (log := LogFileName.parse(path.name))}
    assert {"files", "column_stats"} <= logs.keys()
    assert all(log.instant == "20261121115046980001" and log.version > 1 for log in logs.values())
    table.compact()
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    gone = {file.rpartition("/")[2] for file in cleaned_paths(table._access.snapshot())}
    snapshot = table._access.snapshot()
    cells = index_cells(snapshot, "column_stats")
    stats = decode_column_stats(pa.array(cells.values(), pa.binary()), SCHEMA)
    told = [of for of in stats.to_pylist() if of["column_name"] == "i"]
    assert gone
    assert {of["file_name"] for of in told if of["is_deleted"]} == gone
    stored = {file.name for partition in ("p1", "p2") for file in snapshot.listing.files(partition)}
    assert {of["file_name"] for of in told if not of["is_deleted"]} == stored
    assert index_problems(storage) == []
    before = table.properties["hoodie.table.metadata.partitions"]
    assert before == "bloom_filters,column_stats,files,record_index"


def test_a_partition_is_made_at_the_instants_that_theirs_is(tmp_path: Path) -> None:
    """And holds what theirs does, with an index beside the writers too."""
    golden = GoldenTables(tmp_path).get("mor_mdt_all_v6_h0150")
    table, storage = HudiTable.open(golden.path), LocalStorage(str(golden.path))
    newest = max(i.requested for i in table.timeline())
    said = index_cells(table._access.snapshot(), "bloom_filters")
    for name in ("bloom_filters", "record_index", "column_stats"):
        table.drop_index(name)
    built = table.build_index("bloom_filters")
    assert index_cells(table._access.snapshot(), "bloom_filters").keys() == said.keys()
    options = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "2",
        "hoodie.metadata.record.index.max.filegroup.count": "2",
    }
    newest = max(i.requested for i in table.timeline() if i.completed)
    table.upsert(table.scan(meta_fields=False).to_arrow().slice(0, 2), options=options)
    timeline = golden.path / ".hoodie" / "metadata" / ".hoodie"
    made = sorted(path.name for path in timeline.glob("*.deltacommit") if len(path.name) > 29)
    assert made == [f"{built.requested}004.deltacommit", f"{newest}010.deltacommit", f"{newest}011.deltacommit"]
    assert not (golden.path / ".hoodie" / ".index_defs").exists()
    assert index_problems(storage) == []
    assert table.lookup(["k1"]).num_rows == table.scan(where="id = 'k1'").to_arrow().num_rows


def metadata_records(path: Path) -> Iterator[tuple[tuple[str, bytes], bytes]]:
    """File and key, and value, of the records in `files`, each in a file that states the schema of version 6."""
    for file in sorted((path / ".hoodie" / "metadata" / "files").iterdir()):
        if BaseFileName.parse(file.name) is not None:
            contents: list[bytes | memoryview] = [file.read_bytes()]
        elif LogFileName.parse(file.name) is not None:
            found = read_blocks(file.read_bytes(), path=file.name)
            contents = [block.read_content() for block in found if block.type is BlockType.HFILE_DATA]
        else:
            continue
        for content in contents:
            reader = HFileReader(content, path=file.name)
            assert reader.schema_text == SCHEMA
            yield from (((file.name, key), value) for key, value in reader.scan())


def newest_commit(path: Path, table: HudiTable) -> CommitMetadata:
    newest = [i for i in table.timeline() if i.action == "deltacommit"][-1]
    file = path / table._access.snapshot().timeline.layout.path(newest)
    return decode_commit(file.read_bytes(), path=str(file))


def stats_of(path: Path, table: HudiTable) -> list[WriteStat]:
    return [stat for of in newest_commit(path, table).partition_to_write_stats.values() for stat in of if stat.is_log]


def version_of(name: str) -> int:
    parsed = LogFileName.parse(name)
    assert parsed is not None
    return parsed.version


def command_blocks(path: Path) -> list[LogBlock]:
    logs = (file for file in path.rglob(".*.log.*") if ".hoodie" not in file.relative_to(path).parts)
    blocks = (b for file in logs if file.suffix != ".crc" for b in read_blocks(file.read_bytes(), path=str(file)))
    return [block for block in blocks if block.type is BlockType.COMMAND]


def rollback_of(path: Path) -> RollbackMetadata:
    file = next(path.glob(".hoodie/*.rollback"))
    return decode_rollback_metadata(file.read_bytes(), path=str(file))
