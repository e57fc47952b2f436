"""A log compaction of the metadata table could change what it says, be unlike Apache Hudi's, so that its readers miss
it, or stand in the way of the compactions, cleans and archivals that come after it.
"""

import random
from datetime import UTC
from typing import Any

import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.headers import compacted_instants, instant_time
from pyhudi.format.log.reader import scan_log
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.action_files import decode_compaction_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.table import MetadataTable, open_metadata_table
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.slices.slice_log import log_sources
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.snapshot import read_snapshot
from tests.support.metadata_indexes import index_cells, index_problems
from tests.support.model import Row, arrow, problems_on
from tests.unit.services.metadata.test_indexes import CITIES, GLOBAL, OTHERS, SECONDARY, Store

SINCE_8 = ("hoodie.metadata.index.secondary.column", "hoodie.metadata.index.partition.stats.enable")


def options(version: int, **more: str) -> dict[str, str]:
    every = {**GLOBAL, **OTHERS, **SECONDARY, "hoodie.metadata.compact.max.delta.commits": "100", **more}
    return {name: value for name, value in every.items() if version >= 8 or name not in SINCE_8}


def log_compacting(blocks_min: int) -> dict[str, str]:
    return {
        "hoodie.metadata.log.compaction.enable": "true",
        "hoodie.metadata.log.compaction.blocks.threshold": str(blocks_min),
    }


def metadata_of(storage: MemoryStorage) -> MetadataTable:
    return open_metadata_table(storage, UTC)


def log_compactions(storage: MemoryStorage) -> list[str]:
    return sorted(metadata_of(storage).timeline.log_compactions)


def content(storage: MemoryStorage) -> dict[str, Any]:
    """What every partition of the metadata table says."""
    snapshot = read_snapshot(storage, UTC, open_listing)
    listing = snapshot.listing
    found: dict[str, Any] = {"files": {of: listing.files(of) for of in listing.partitions()}}
    for partition in snapshot.config.metadata_partitions:
        if partition != "files":
            found[partition] = index_cells(snapshot, partition)
    return found


@pytest.mark.parametrize("version", [9, 6, pytest.param(8, marks=pytest.mark.long)])
def test_it_changes_nothing_and_is_written_as_apache_hudi_writes_it(version: int) -> None:
    store = Store("MERGE_ON_READ", version, **options(version))
    for turn in range(4):
        store.table.upsert(arrow([Row(f"k{n}", CITIES[n % 4], turn, n) for n in range(turn, 14)]))
    store.table.delete(arrow([Row("k5", CITIES[1], 9, 9)]))
    before, table = content(store.storage), metadata_of(store.storage)
    newest = max(i.requested for i in table.timeline.completed_writes)
    store.table.metadata.update(options=log_compacting(9))
    assert log_compactions(store.storage) == []  # no log has so many blocks

    store.table.metadata.update(options=log_compacting(4))

    assert content(store.storage) == before
    assert index_problems(store.storage) == []
    table, [requested] = metadata_of(store.storage), log_compactions(store.storage)
    assert requested == f"{newest}005" if version == 6 else len(requested) == 17
    done = next(i for i in table.timeline if i.requested == requested)
    assert (done.action, done.state) == ("deltacommit", "COMPLETED")
    path = table.timeline.layout.path(Instant(requested, "logcompaction", "REQUESTED"))
    plan = decode_compaction_plan(table.storage.get(path), path=path)
    assert plan.preserve_hoodie_metadata
    assert plan.strategy is not None
    assert plan.strategy.class_name == "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
    commit = read_commit(table.storage, table.timeline, done)
    assert (commit.operation_type, commit.compacted) == ("LOG_COMPACT", True)
    stats = {(of, s.file_id): s for of, stats in commit.partition_to_write_stats.items() for s in stats}
    assert set(stats) == set(plan.file_groups)
    assert ("files", "files-0000-0") in stats
    for (partition, file_id), stat in stats.items():
        piece = next(piece for piece in table.slices(partition) if piece.file_id == file_id)
        assert stat.prev_commit == piece.base_instant
        name = LogFileName.parse((stat.path or "").rpartition("/")[2])
        assert name is not None
        assert name == piece.log_files[-1].name
        assert name.instant == (piece.base_instant if version == 6 else requested)
        *sources, (path, log, size) = log_sources(table.storage, piece)
        blocks = list(scan_log(log, size, path=path))
        assert {instant_time(block) for block in blocks} == {requested}
        merged = {instant_time(b) for path, log, size in sources for b in scan_log(log, size, path=path)}
        assert {compacted_instants(block) for block in blocks} == {tuple(sorted(merged))}
        assert {block.type for block in blocks} <= {BlockType.HFILE_DATA, BlockType.DELETE}
    # It is not due again before so many delta commits more.
    files = {file.path for file in store.storage.list("", recursive=True)}
    store.table.metadata.update(options=log_compacting(4))
    assert {file.path for file in store.storage.list("", recursive=True)} == files


def step(table: HudiTable, draw: random.Random, turn: int) -> str:
    """None that would bring a key twice into the table, which a global index cannot say."""
    count = draw.randint(1, 4)
    rows = arrow([Row(f"k{10 * n + draw.randint(0, 9)}", draw.choice(CITIES), turn, n) for n in range(count)])
    name = draw.choice(["upsert", "upsert", "upsert", "delete", "delete_partitions", "clean", "compact"])
    match name:
        case "delete_partitions":
            table.delete_partitions(table.metadata.list_partitions()[:1])
        case "upsert" | "delete":
            getattr(table, name)(rows)
        case "compact" if table.table_type == "MERGE_ON_READ":
            table.compact()
        case _:
            table.clean()
    return name


@pytest.mark.parametrize(
    "kind, version",
    [
        ("MERGE_ON_READ", 6),
        pytest.param("MERGE_ON_READ", 9, marks=pytest.mark.long),
        pytest.param("COPY_ON_WRITE", 8, marks=pytest.mark.long),
        pytest.param("COPY_ON_WRITE", 6, marks=pytest.mark.long),
    ],
)
def test_writes_compactions_cleans_and_archivals_go_on_after_it(kind: str, version: int) -> None:
    more = {
        **log_compacting(3), "hoodie.metadata.compact.max.delta.commits": "6",
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1",
        "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3",
    }  # fmt: skip
    store = Store(kind, version, **options(version, **more))
    draw, done, seen = random.Random(version), [], set()
    store.table.upsert(arrow([Row(f"k{n}", CITIES[n], 0, n) for n in range(4)]))
    for turn in range(24):
        done.append(step(store.table, draw, turn))
        seen |= set(log_compactions(store.storage))
        if turn % 8 == 0:
            assert index_problems(store.storage) == [], done
    assert index_problems(store.storage) == [], done
    assert problems_on(store.storage) == []
    assert store.table.metadata.validate().differences == ()
    metadata = metadata_of(store.storage)
    assert len(seen) > 2
    compactions = [i for i in metadata.timeline.with_archived() if i.action == "commit"]
    assert len(compactions) > 1
    assert any(i.action == "clean" for i in metadata.timeline.with_archived())
    assert seen - {i.requested for i in metadata.timeline}, "none was archived"
    bases = [BaseFileName.parse(file.path.rpartition("/")[2]) for file in metadata.storage.list("files")]
    first = compactions[0].requested
    assert all(base is None or base.requested > first for base in bases), "old slices were not cleaned"


def test_one_that_apache_hudi_left_pending_is_undone_and_options_are_checked() -> None:
    store = Store("MERGE_ON_READ", 9)
    for turn in range(3):
        store.table.upsert(arrow([Row("k", "oslo", turn, turn)]))
    metadata = metadata_of(store.storage)
    pending = Instant("20990101000000000", "logcompaction", "REQUESTED")
    metadata.storage.put(metadata.timeline.layout.path(pending), b"")
    store.table.upsert(arrow([Row("k", "oslo", 9, 9)]))
    assert log_compactions(store.storage) == []
    assert index_problems(store.storage) == []
    for key, value in (("enable", "perhaps"), ("blocks.threshold", "0")):
        with pytest.raises(Invalid, match=f"hoodie.metadata.log.compaction.{key}"):
            store.table.upsert(
                arrow([Row("k", "oslo", 9, 9)]), options={f"hoodie.metadata.log.compaction.{key}": value}
            )
