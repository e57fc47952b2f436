"""Resizing buckets of a ring: the rows of one or more buckets become the base files of the buckets that replace them.

It is a module-level function over frozen values. A thread of this process and a Spark task run it with the same result.
"""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.keys.hashing_metadata import HashingMetadata
from pyhudi.format.names import file_group_id
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.timeline.records import WriteStat
from pyhudi.index.consistent_buckets import RingBuckets
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage
from pyhudi.write.clustering.groups import rows_of_slices
from pyhudi.write.clustering.target import ClusteringTarget, GroupTask, NewFile


@dataclass(frozen=True, slots=True)
class ResizeTask:
    """Buckets of one partition whose rows go to other buckets.

    `group`: the slices. `ring`: the partition's ring after the resizing. `prefixes`: the file id prefixes of the
    buckets to which the rows go. `hash_fields`: the key columns that are hashed.
    """

    group: GroupTask
    ring: HashingMetadata
    prefixes: frozenset[str]
    hash_fields: tuple[str, ...]


def resize_group(
    target: ClusteringTarget, task: ResizeTask, *, task_attempt: int, storage: Storage | None = None
) -> list[WriteStat]:
    """Write the rows of the slices to the file groups of their new buckets. Returns the statement of each file.

    Rows keep the instant and the sequence number of their last write; only the name of their file is new. A bucket
    without a row gets no file: the next write makes it. `task_attempt`: different in each attempt at one task.

    Memory: a row group for each new bucket. Spec: format/indexes.md section 5.
    Raises: Invalid for a row that another bucket should hold; the resizing then stays pending.
    """
    store = storage if storage is not None else open_storage(target.location)
    rule = RingBuckets(task.ring, task.hash_fields)
    files: dict[int, NewFile] = {}

    with ExitStack() as open_files:
        for batch in rows_of_slices(store, target, task.group, target.schema.names):
            buckets = rule.bucket_of(batch.column(RECORD_KEY))
            for bucket in np.unique(buckets).tolist():
                if bucket not in files:
                    _refuse_stray(task, rule, bucket)
                    file_id = file_group_id(rule.ring.nodes[bucket].file_id_prefix, 0)
                    files[bucket] = NewFile.begin(store, target, task.group, file_id, task_attempt)
                    open_files.enter_context(files[bucket].writer)
                files[bucket].write(batch.filter(pa.array(buckets == bucket)))

    return [files[bucket].stat(task.group) for bucket in sorted(files)]


def _refuse_stray(task: ResizeTask, rule: RingBuckets, bucket: int) -> None:
    if rule.ring.nodes[bucket].file_id_prefix in task.prefixes:
        return
    first = task.group.slices[0]
    raise Invalid(
        f"{first.base_path or first.logs[0][0]}: expected rows of its own bucket only, found one of bucket {bucket:,} "
        f"of {rule.bucket_count:,}, by the hash of {', '.join(task.hash_fields)}; set hoodie.bucket.index.hash.field "
        "as the table was written"
    )
