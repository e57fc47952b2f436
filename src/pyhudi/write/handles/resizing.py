"""Resizing buckets of a ring: the rows of one or more buckets become the base files of the buckets that replace them.

It is a module-level function over frozen values. A thread of this process and a Spark task run it with the same result.
"""

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.keys.hashing_metadata import HashingMetadata
from pyhudi.format.names import BaseFileName, file_group_id, join
from pyhudi.format.schema.conversion import FILE_NAME, RECORD_KEY
from pyhudi.format.timeline.records import WriteStat
from pyhudi.index.consistent_buckets import RingBuckets
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.base_file_writer import BaseFileWriter
from pyhudi.write.handles.clustering import ClusteringTarget, GroupTask, new_file_stat, stored_rows


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
    files: dict[int, _NewBucket] = {}

    with ExitStack() as open_files:
        for batch in stored_rows(store, target, task.group, target.schema.names):
            buckets = rule.bucket_of(batch.column(RECORD_KEY))
            for bucket in np.unique(buckets).tolist():
                if bucket not in files:
                    _refuse_stray(task, rule, bucket)
                    files[bucket] = _NewBucket.begin(store, target, task, rule, bucket, task_attempt, open_files)
                files[bucket].write(batch.filter(pa.array(buckets == bucket)))

    return [files[bucket].stat(task.group) for bucket in sorted(files)]


@dataclass(frozen=True, slots=True)
class _NewBucket:
    file_id: str
    file: AttemptedFile
    writer: BaseFileWriter

    @classmethod
    def begin(
        cls,
        store: Storage,
        target: ClusteringTarget,
        task: ResizeTask,
        rule: RingBuckets,
        bucket: int,
        task_attempt: int,
        open_files: ExitStack,
    ) -> "_NewBucket":
        file_id = file_group_id(rule.ring.nodes[bucket].file_id_prefix, 0)
        token = f"{task.group.number}-{target.attempt}-{task_attempt}"
        name = BaseFileName(file_id, token, target.requested, target.settings.extension).format()
        file = AttemptedFile(store, target.requested, join(task.group.partition, name), "CREATE")
        file.begin()
        writer = BaseFileWriter(
            store, file.path, target.schema, target.avro_schema, target.settings, constants={FILE_NAME: name},
            bloom=target.settings.new_bloom(), before_visible=file.refuse_when_given_up,
        )  # fmt: skip
        return cls(file_id, file, open_files.enter_context(writer))

    def write(self, rows: pa.RecordBatch) -> None:
        self.writer.write(rows.select(self.writer.given.names), new_keys=rows.column(RECORD_KEY))

    def stat(self, group: GroupTask) -> WriteStat:
        return new_file_stat(self.file, group, self.file_id, self.writer.rows)


def _refuse_stray(task: ResizeTask, rule: RingBuckets, bucket: int) -> None:
    if rule.ring.nodes[bucket].file_id_prefix in task.prefixes:
        return
    first = task.group.slices[0]
    raise Invalid(
        f"{first.base_path or first.logs[0][0]}: expected rows of its own bucket only, found one of bucket {bucket:,} "
        f"of {rule.bucket_count:,}, by the hash of {', '.join(task.hash_fields)}; set hoodie.bucket.index.hash.field "
        "as the table was written"
    )
