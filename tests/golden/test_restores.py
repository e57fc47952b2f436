"""A savepoint of ours could name other files than Apache Hudi's, a restore say less, or leave what Hudi would not.

The tables were written, savepointed and restored by Apache Hudi 0.15.0, 1.0.2 and 1.2.0, and written to once more. Here
the same savepoint is made again, and that last write is rolled back by a restore of ours.
"""

import io

import fastavro
import pytest

from pyhudi import HudiTable
from pyhudi.errors import Invalid, NotFound
from pyhudi.format.timeline.action_files import decode_savepoint
from pyhudi.format.timeline.instant import WRITE_ACTIONS
from pyhudi.storage.memory import MemoryStorage
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables
from tests.support.merge_on_read import handle, in_memory
from tests.support.model import problems_on

NAMES = ["cow_restore_v6_h0150", "cow_restore_v8_h102", "cow_restore_v9_h120", "mor_restore_v9_h120"]


def timeline_file(storage: MemoryStorage, folder: str, requested: str, ending: str) -> bytes:
    (path,) = (
        f.path
        for f in storage.list(folder)
        if f.path.rpartition("/")[2].startswith(requested) and f.path.endswith(ending)
    )
    return storage.get(path)


def record(content: bytes) -> dict[str, object]:
    found = next(iter(fastavro.reader(io.BytesIO(content))))
    assert isinstance(found, dict)
    return found


def shape(value: object) -> object:
    """A record without what differs from one restore to another: numbers, texts, and the names and counts of things."""
    match value:
        case dict():
            is_record = all(isinstance(key, str) and key[:1].islower() and key.isalpha() for key in value)
            return (
                {key: shape(of) for key, of in value.items()} if is_record else [shape(of) for of in value.values()][:1]
            )
        case list():
            return [shape(of) for of in value][:1]
        case _:
            return type(value).__name__


@pytest.mark.parametrize("name", NAMES)
def test_a_savepoint_names_the_files_that_hudis_names(golden: GoldenTables, name: str) -> None:
    storage = in_memory(golden.get(name))
    table = handle(storage)
    folder = table._access.snapshot().timeline.layout.folder
    (theirs,) = table.savepoints()
    before = decode_savepoint(timeline_file(storage, folder, theirs.requested, ".savepoint"), path="")

    with pytest.raises(Invalid, match="found one; delete it first"):
        table.savepoint(theirs.requested)
    assert table.delete_savepoint(theirs.requested) == theirs
    assert table.savepoints() == ()
    ours = table.savepoint(theirs.requested, user="me", comment="again")
    with pytest.raises(NotFound, match=f"which are: {theirs.requested}"):
        table.delete_savepoint("20260101000000000")

    after = decode_savepoint(timeline_file(storage, folder, ours.requested, ".savepoint"), path="")
    assert table.savepoints() == (ours,)
    assert (ours.user, ours.comment, ours.file_count) == ("me", "again", theirs.file_count)
    assert {p: sorted(of.savepoint_data_file) for p, of in after.partition_metadata.items()} == {
        p: sorted(of.savepoint_data_file) for p, of in before.partition_metadata.items()
    }
    assert after.version == before.version
    states = {f.path for f in storage.list(folder) if f"{ours.requested}.savepoint.inflight" in f.path}
    assert len(states) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_restore_says_what_hudis_says_and_leaves_what_it_leaves(golden: GoldenTables, name: str) -> None:
    storage = in_memory(golden.get(name))
    table = handle(storage)
    layout = table._access.snapshot().timeline.layout
    (savepoint,) = table.savepoints()
    theirs, last = table.timeline()[-2:]
    then = table.scan(as_of=savepoint.requested).to_arrow()

    result = table.restore(savepoint.requested)

    assert (result.restored_to, result.rolled_back, result.dropped) == (savepoint.requested, (last.requested,), ())
    assert_same_rows(table.scan().to_arrow(), then)
    assert problems_on(storage) == []
    assert table.metadata.validate().differences == ()
    metadata = ".hoodie/metadata/"
    for folder in (layout.folder, f"{metadata}{layout.folder}"):
        both = sorted({f.path.rpartition("/")[2][:17] for f in storage.list(folder) if f.path.endswith(".restore")})
        assert len(both) == 2
        for ending in (".restore.requested", ".restore"):
            their, our = (record(timeline_file(storage, folder, of, ending)) for of in both)
            assert shape(our) == shape(their)
            assert {our.get(name) for name in ("version", "savepointToRestoreTimestamp")} == {
                their.get(name) for name in ("version", "savepointToRestoreTimestamp")
            }
        assert [timeline_file(storage, folder, of, ".restore.inflight") for of in both] == [b"", b""]
        syncs = [
            f.path for f in storage.list(folder) if f.path.rpartition("/")[2] > both[-1] and "deltacommit" in f.path
        ]
        assert len(syncs) == (3 if folder.startswith(metadata) else 0)
    assert theirs.action == "restore"

    table.upsert(then.slice(0, 2).select([c for c in then.column_names if not c.startswith("_hoodie")]))
    assert table.scan().to_arrow().num_rows == then.num_rows
    assert problems_on(storage) == []
    assert table.metadata.validate().differences == ()


OTHERS = [
    "cow_cluster_v6_h0150", "cow_cluster_v9_h120", "cow_cluster_scheduled_v9_h120", "cow_inflight_v9_h120",
    "cow_insert_overwrite_v9_h120", "cow_delete_partition_v6_h0150", "cow_mdt_all_v9_h120", "mor_cluster_v9_h120",
    "mor_compact_inline_v6_h0150", "mor_compact_inline_v9_h120", "mor_compact_scheduled_v6_h0150",
    "mor_compact_scheduled_v9_h120", "mor_inflight_v6_h0150", "mor_log_compact_v6_h0150", "mor_log_compact_v9_h120",
    "mor_mdt_all_v6_h0150", "mor_mdt_all_v8_h102",
    "mor_bucket_v6_h0150", "mor_replace_v6_h0150", "mor_replace_v9_h120", "mor_rollback_v6_h0150",
    "mor_inflight_rolled_back_v6_h0150", "mor_partitioned_rli_v9_h120", "mor_secondary_index_v9_h120",
]  # fmt: skip
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
QUICK = ("cow_cluster_v9_h120", "mor_compact_scheduled_v6_h0150", "mor_mdt_all_v8_h102")


def check_metadata(table: HudiTable) -> None:
    """Some of the tables were written without a metadata table."""
    if table.metadata.partitions_in_use:
        assert table.metadata.validate().differences == ()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in OTHERS]
)
def test_whatever_hudi_wrote_is_rolled_back_whole(golden: GoldenTables, name: str) -> None:
    """Clusterings, compactions, overwrites, dead writes: back to the first commit, nothing of what came after is left.

    Files whose writer Apache Hudi rolled back without deleting them are no one's any more, and stay.
    """
    storage = in_memory(golden.get(name))
    table = handle(storage)
    check_metadata(table)
    writes = [i for i in table.timeline() if i.comparable_action in WRITE_ACTIONS and i.completed]
    first = min(writes, key=lambda i: i.completed or "") if table.table_version > 6 else writes[0]
    then = table.scan(as_of=first.requested).to_arrow()

    result = table.restore(first.requested)

    assert_same_rows(table.scan().to_arrow(), then)
    assert set(result.rolled_back) >= {i.requested for i in writes} - {first.requested}
    left = [i for i in table.timeline() if i.requested > first.requested]
    assert {i.action for i in left} <= {"restore", "clean", "indexing"}
    check_metadata(table)

    options = BUCKETS if "bucket" in name else {}
    own = [column for column in then.column_names if not column.startswith("_hoodie")]
    table.upsert(then.slice(0, 2).select(own), options=options)
    assert table.scan().to_arrow().num_rows == then.num_rows
    check_metadata(table)
