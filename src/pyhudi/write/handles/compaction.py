"""Compacting one file slice: its base rows and its log become its file group's next base file.

It is a module-level function over frozen values. A thread of this process and a Spark task run it with the same result.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.format.names import BaseFileName, MarkerKind, join
from pyhudi.format.schema.conversion import FILE_NAME, RECORD_KEY
from pyhudi.format.timeline.records import NEW_FILE_GROUP, WriteStat
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import read_merged
from pyhudi.table.slices.slice_log import LogTally, SliceFiles
from pyhudi.table.view.file_system_view import NewLog, SourceFile
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.base_file_writer import BaseFileSettings, BaseFileWriter
from pyhudi.write.log_settings import LogSettings


@dataclass(frozen=True, slots=True)
class CompactionTarget:
    """What all slices of one attempt at a compaction share. Picklable.

    `attempt`: part of the files' names, different in each attempt at this compaction. A task of a dead attempt may
    still be running, and may show its file late. `schema`, `avro_schema`: rows as stored, with meta fields. `logs`: how
    logs are written. `log_marker`: the kind of their markers.
    """

    location: StorageLocation
    requested: str
    attempt: int
    schema: pa.Schema
    avro_schema: str
    settings: BaseFileSettings
    reading: LogReading
    logs: LogSettings
    log_marker: MarkerKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTask:
    """A slice to compact. `number`: its number in the plan. `base_file`, `logs`: names in the partition; for logs also
    their bytes, in reading order. `base_instant`: of the slice. `log`: the name of a new log of the slice, where logs
    are not named after what wrote them. `source`: as in `FileSlice`.
    """

    number: int
    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    logs: tuple[tuple[str, int], ...]
    log: NewLog | None = None
    source: SourceFile | None = None

    @property
    def files(self) -> SliceFiles:
        base = None if self.base_file is None else join(self.partition, self.base_file)
        logs = tuple((join(self.partition, name), size_bytes) for name, size_bytes in self.logs)
        return SliceFiles(base, self.base_instant, logs, self.source)

    @property
    def log_size_bytes(self) -> int:
        return sum(size_bytes for _, size_bytes in self.logs)


def compact_slice(
    target: CompactionTarget, task: SliceTask, *, task_attempt: int, storage: Storage | None = None
) -> list[WriteStat]:
    """Write a slice's next base file, even if no row is left. Returns the commit's statement of this one file.

    Rows keep the instant of their last write; only the name of their file is new. `task_attempt`: different in each
    attempt at one task. Memory: as `read_merged`, and one row group. Spec: format/actions.md section 8.
    """
    store = storage if storage is not None else open_storage(target.location)
    token = write_token(target, task, task_attempt)
    name = BaseFileName(task.file_id, token, target.requested, target.settings.extension).format()
    file = AttemptedFile(
        store, target.requested, join(task.partition, name), "CREATE" if task.base_file is None else "MERGE"
    )

    tally = LogTally()
    batches = read_merged(
        store, task.files, target.reading, target.schema, target.schema.names, use_threads=False, tally=tally
    )
    rows = write_merged(file, name, target.schema, target.avro_schema, target.settings, batches)
    size_bytes = file.shown_size()

    stat = WriteStat(
        file_id=task.file_id, path=file.path, partition_path=task.partition,
        prev_commit=NEW_FILE_GROUP if task.base_file is None else task.base_instant,
        prev_base_file=task.base_file,
        num_writes=rows, num_inserts=tally.inserted, num_update_writes=tally.updated,
        num_deletes=tally.deleted, total_write_bytes=size_bytes, file_size_in_bytes=size_bytes,
    )  # fmt: skip
    return [with_log_counts(stat, task, tally)]


def write_merged(
    file: AttemptedFile,
    name: str,
    schema: pa.Schema,
    avro_schema: str,
    settings: BaseFileSettings,
    batches: Iterable[pa.RecordBatch],
) -> int:
    """Write the rows of a merged slice as a base file of this name. Returns how many rows there are.

    Rows keep the instant of their last write.
    """
    file.begin()
    with BaseFileWriter(
        file.storage, file.path, schema, avro_schema, settings, constants={FILE_NAME: name},
        bloom=settings.new_bloom(), before_visible=file.refuse_when_given_up,
    ) as writer:  # fmt: skip
        for batch in batches:
            writer.write(batch.select(writer.given.names), new_keys=batch.column(RECORD_KEY))
    return writer.rows


def write_token(target: CompactionTarget, task: SliceTask, task_attempt: int) -> str:
    """The part of the file's name that no other attempt at this slice has."""
    return f"{task.number}-{target.attempt}-{task_attempt}"


def with_log_counts(stat: WriteStat, task: SliceTask, tally: LogTally) -> WriteStat:
    """The statement, with the counts of the merged log. Seen: 1.0.2 counts the bytes of the log files, as here; 1.2.0
    those of their blocks' contents.
    """
    return replace(
        stat,
        total_log_records=tally.records,
        total_log_files_compacted=len(task.logs),
        total_log_size_compacted=task.log_size_bytes,
        total_log_blocks=tally.blocks,
        total_updated_records_compacted=tally.keys,
        total_corrupt_log_block=tally.torn_blocks,
        total_rollback_blocks=tally.rollback_blocks,
    )
