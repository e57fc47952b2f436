"""The first base files of a table that is bootstrapped by metadata only: the meta fields of the rows of source files.

It is a module-level function over frozen values. A thread of this process and a Spark task run it with the same result.
"""

import json
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pyhudi.format.keys.record_keys import KeySpec, record_keys
from pyhudi.format.names import BaseFileName, join
from pyhudi.format.schema.arrow_types import canonical_arrow
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELD_SCHEMAS, META_FIELDS, RECORD_KEY
from pyhudi.format.timeline.records import NEW_FILE_GROUP, WriteStat
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.table.slices.conform import conform_batch
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.base_file_writer import BaseFileSettings, BaseFileWriter
from pyhudi.write.handles.partition_metafile import put_partition_metafile
from pyhudi.write.handles.stored_rows import RowStamp, stored_rows

SKELETON_SCHEMA: Final = pa.schema([pa.field(name, pa.string()) for name in META_FIELDS])
SKELETON_AVRO: Final = json.dumps(
    {"type": "record", "name": "HoodieRecordKey", "doc": "", "fields": META_FIELD_SCHEMAS}, separators=(",", ":")
)
"""Seen: 0.15.0 and 1.2.0 state this schema in such files."""


@dataclass(frozen=True, slots=True)
class SkeletonTarget:
    """What all skeletons of one bootstrap share. Picklable.

    `source`: the folder of the source files. `attempt`: a part of the files' names. `keys`: how record keys are
    spelled. `has_parquet_metafiles`: the files that mark partitions are Parquet files.
    """

    location: StorageLocation
    source: StorageLocation
    requested: str
    epoch_ms: int
    attempt: int
    settings: BaseFileSettings
    keys: KeySpec
    has_parquet_metafiles: bool = False


@dataclass(frozen=True, slots=True)
class SkeletonFile:
    """A skeleton to write. `source`: its source file, below the folder of the source."""

    partition: str
    file_id: str
    source: str


@dataclass(frozen=True, slots=True)
class SkeletonTask:
    number: int
    files: tuple[SkeletonFile, ...]


def write_skeletons(
    target: SkeletonTarget, task: SkeletonTask, *, task_attempt: int, storage: Storage | None = None
) -> list[WriteStat]:
    """Write the skeletons of a task, one for each source file, row by row in its order.

    `task_attempt`: different in each attempt at one task. Memory: a row group of the key columns.
    Spec: format/bootstrap.md section 4. Raises: Invalid for a null or empty key.
    """
    store = storage if storage is not None else open_storage(target.location)
    source = open_storage(target.source)
    for partition in sorted({file.partition for file in task.files}):
        put_partition_metafile(
            store, partition, requested=target.requested, epoch_ms=target.epoch_ms,
            is_parquet=target.has_parquet_metafiles,
        )  # fmt: skip

    token = f"{task.number}-{target.attempt}-{task_attempt}"
    stats: list[WriteStat] = []
    sequence = 0
    for skeleton in task.files:
        stat = _write_one(target, task, skeleton, token, sequence, store, source)
        sequence += stat.num_writes or 0
        stats.append(stat)
    return stats


def _write_one(
    target: SkeletonTarget,
    task: SkeletonTask,
    skeleton: SkeletonFile,
    token: str,
    sequence: int,
    store: Storage,
    source: Storage,
) -> WriteStat:
    settings = target.settings
    name = BaseFileName(skeleton.file_id, token, target.requested, settings.extension).format()
    stamp = RowStamp(target.requested, task.number, skeleton.partition, name)
    file = AttemptedFile(store, target.requested, join(skeleton.partition, name), "CREATE")

    file.begin()
    with (
        closing(open_base_file(source, skeleton.source, format_of=name)) as rows,
        BaseFileWriter(
            store, file.path, SKELETON_SCHEMA, SKELETON_AVRO, settings,
            constants={COMMIT_TIME: target.requested, **stamp.constants}, bloom=settings.new_bloom(),
            before_visible=file.refuse_when_given_up,
        ) as writer,
    ):  # fmt: skip
        for batch in rows.batches(target.keys.key_columns):
            typed = conform_batch(batch, canonical_arrow(batch.schema), path=skeleton.source)
            keys = record_keys(pa.Table.from_batches([typed]), target.keys).combine_chunks()
            keyed = pa.RecordBatch.from_arrays([keys], names=[RECORD_KEY])
            writer.write(stored_rows(stamp, keyed, writer.given, sequence + writer.rows), new_keys=keys)

    size_bytes = file.shown_size()
    return WriteStat(
        file_id=skeleton.file_id, path=file.path, partition_path=skeleton.partition, prev_commit=NEW_FILE_GROUP,
        num_writes=writer.rows, num_inserts=writer.rows, total_write_bytes=size_bytes, file_size_in_bytes=size_bytes,
    )  # fmt: skip
