"""We could look for a row in another file group than the one in which Apache Hudi put it.

Every record key of the tables that it wrote by its bucket index must hash to the bucket that the row's file group
is named after; rings must be the ones that it stored, byte for byte.
"""

from collections.abc import Callable
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import Invalid
from pyhudi.format.keys.hashing_metadata import INITIAL_INSTANT, HashingMetadata, ring_folder
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema.conversion import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.index.bucket import (
    BucketRule,
    FixedBuckets,
    check_stored_keys,
    live_buckets,
    looks_bucketed,
)
from pyhudi.index.consistent_buckets import RingBuckets, find_ring
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.local import LocalStorage
from pyhudi.table.facts.bucket_facts import facts_of_table
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from tests.support.golden_tables import GoldenTable, GoldenTables, golden_names

RINGS = "mor_consistent_bucket_v9_h120"
FIXED = tuple(name for name in golden_names() if name != RINGS and ("_bucket_" in name or "_nbcc_" in name))


def bucket_options(table: GoldenTable) -> dict[str, str]:
    """What the first write of a table said of its buckets."""
    options: dict[str, Any] = next(o["options"] for o in table.manifest["operations"] if "options" in o)
    return {name: text for name, text in options.items() if "bucket" in name or name == "hoodie.index.type"}


def opened(table: GoldenTable) -> tuple[LocalStorage, Snapshot]:
    storage = LocalStorage(str(table.path))
    return storage, read_snapshot(storage, UTC, open_listing)


def file_id(name: str) -> str:
    """Of what a row says of its file: a base file's name, or of a row in a log the id itself."""
    base = BaseFileName.parse(name)
    return base.file_id if base is not None else name


def misplaced(table: GoldenTable, rule_of: Callable[[str], BucketRule], **query: Any) -> tuple[int, list[str]]:
    """The number of rows, and the keys of those that lie in another file group than their bucket's."""
    rows = HudiTable.open(table.path).scan(columns=[RECORD_KEY, PARTITION_PATH, FILE_NAME], **query).to_arrow()
    strays: list[str] = []
    for partition in rows.column(PARTITION_PATH).unique().to_pylist():
        part = rows.filter(pa.compute.equal(rows.column(PARTITION_PATH), partition))
        rule = rule_of(partition)
        stored = [rule.bucket_of_file(file_id(name)) for name in part.column(FILE_NAME).to_pylist()]
        differs = np.array(stored, dtype=object) != rule.bucket_of(part.column(RECORD_KEY))
        strays += part.column(RECORD_KEY).filter(pa.array(differs)).to_pylist()
    return len(rows), strays


@pytest.mark.parametrize("name", FIXED)
def test_every_row_lies_in_the_bucket_of_its_key(golden: GoldenTables, name: str) -> None:
    table = golden.get(name)
    storage, snapshot = opened(table)
    facts = facts_of_table(snapshot.config, bucket_options(table))
    assert facts is not None
    assert facts.bucket_count is not None
    rule = FixedBuckets(facts.bucket_count, facts.hash_fields)

    count, strays = misplaced(table, lambda partition: rule)

    assert count > 20
    assert strays == []
    for partition in snapshot.listing.partitions():
        slices = snapshot.slices(partition)
        assert looks_bucketed(slices)
        live = live_buckets(rule, partition, slices)
        checked = check_stored_keys(storage, rule, live, snapshot.as_written, partition=partition)
        assert (checked is None) == ("_nbcc_" in name)  # these have logs only


@pytest.mark.parametrize("name", [name for name in FIXED if "_nbcc_" not in name])
def test_another_count_is_noticed_by_the_stored_keys(golden: GoldenTables, name: str) -> None:
    table = golden.get(name)
    storage, snapshot = opened(table)
    count = int(bucket_options(table)["hoodie.bucket.index.num.buckets"])
    wrong = FixedBuckets(count + 1, snapshot.config.record_key)

    partition = snapshot.listing.partitions()[0]
    live = live_buckets(wrong, partition, snapshot.slices(partition))

    with pytest.raises(Invalid, match=r"expected keys of bucket \d+, found"):
        check_stored_keys(storage, wrong, live, snapshot.as_written, partition=partition)


@pytest.mark.parametrize(
    "name", ["cow_part_v8_h102", "cow_nonpart_v9_h120", "mor_avro_v6_h0150", "mor_logonly_v9_h120", RINGS]
)
def test_tables_of_other_indexes_do_not_look_bucketed(golden: GoldenTables, name: str) -> None:
    _, snapshot = opened(golden.get(name))

    assert not looks_bucketed([piece for path in snapshot.listing.partitions() for piece in snapshot.slices(path)])


def test_every_row_lies_where_the_ring_of_its_partition_says(golden: GoldenTables) -> None:
    """The snapshot after the resizing, and the one before it, by the ring of that time."""
    table = golden.get(RINGS)
    storage, snapshot = opened(table)

    def rule_now(partition: str) -> RingBuckets:
        live = [piece.file_id for piece in snapshot.slices(partition)]
        ring = find_ring(storage, partition, snapshot.timeline, lambda: live)
        assert ring is not None
        assert ring.resizings == 1
        assert set(live_buckets(RingBuckets(ring, ("id",)), partition, snapshot.slices(partition))) == {0, 1, 2, 3}
        return RingBuckets(ring, ("id",))

    def rule_before(partition: str) -> RingBuckets:
        return RingBuckets(HashingMetadata.initial(partition, 4), ("id",))

    assert misplaced(table, rule_now) == (HudiTable.open(table.path).scan().to_arrow().num_rows, [])
    before = snapshot.timeline.completed_writes[-2].requested
    count, strays = misplaced(table, rule_before, as_of=before)
    assert count > 50
    assert strays == []
    assert misplaced(table, rule_before)[1]


def test_rings_are_written_as_apache_hudi_writes_them(golden: GoldenTables) -> None:
    storage = LocalStorage(str(golden.get(RINGS).path))
    paths = [f.path for f in storage.list(ring_folder(""), recursive=True) if f.path.endswith(".hashing_meta")]
    assert len(paths) == 6

    for path in paths:
        ring = HashingMetadata.decode(storage.get(path), path=path)
        assert ring.encode() == storage.get(path)
        assert ring.path == path
        if ring.instant == INITIAL_INSTANT:
            assert ring == HashingMetadata.initial(ring.partition, 4)
