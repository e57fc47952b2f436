"""What all groups of a clustering share, what each of them is, and the files that they become."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pyhudi.format.names import BaseFileName, join
from pyhudi.format.schema.conversion import FILE_NAME, RECORD_KEY
from pyhudi.format.timeline.records import WriteStat
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.slices.base_files.rows import AsWritten
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.base_file_writer import BaseFileSettings, BaseFileWriter
from pyhudi.write.place.curves import Curve

HELD_BYTES_MAX: Final = 1 << 30
"""Rows that one task sorts at a time, at most, as their files state their size before it was compressed."""

OVER: Final = 1.25
"""A file may exceed the size that is asked for by this factor. Otherwise rounding would leave tiny last files."""


@dataclass(frozen=True, slots=True)
class ClusteringTarget:
    """What all groups of one attempt at a clustering share. Picklable.

    `attempt`: part of the files' names, different in each attempt at this clustering. `schema`, `avro_schema`: rows as
    stored, with meta fields. `reading`: how logs are read; None for a table without logs. `as_written`: how base files
    may differ from `schema`. `sort_columns`: rows are written in the order of these; none: as they are stored.
    `curve`: what that order is. `file_size_bytes`: what a file is written to. `compression`: the codec that is asked
    for; None: row groups that are copied keep theirs. `held_bytes_max`: of rows that are sorted at a time.
    """

    location: StorageLocation
    requested: str
    attempt: int
    schema: pa.Schema
    avro_schema: str
    settings: BaseFileSettings
    reading: LogReading | None
    as_written: AsWritten
    sort_columns: tuple[str, ...]
    curve: Curve
    file_size_bytes: int
    compression: str | None = None
    held_bytes_max: int = HELD_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """Slices of one partition that are clustered together. `number`: of the group in the plan.

    `files`: how many files they are to become. `uuid`: begins the ids of the new file groups. `size_bytes`: of all
    files of the slices.
    """

    number: int
    partition: str
    slices: tuple[SliceFiles, ...]
    files: int
    uuid: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A new file group, and the one base file that a task writes into it."""

    file_id: str
    file: AttemptedFile

    @classmethod
    def begin(
        cls, store: Storage, target: ClusteringTarget, task: GroupTask, file_id: str, task_attempt: int
    ) -> "NewGroup":
        token = f"{task.number}-{target.attempt}-{task_attempt}"
        name = BaseFileName(file_id, token, target.requested, target.settings.extension).format()
        file = AttemptedFile(store, target.requested, join(task.partition, name), "CREATE")
        file.begin()
        return cls(file_id, file)

    @property
    def name(self) -> str:
        return self.file.path.rpartition("/")[2]

    def stat(self, task: GroupTask, *, rows: int) -> WriteStat:
        """Seen: all rows of the new file count as inserted (0.15.0, 1.0.2, 1.2.0)."""
        size_bytes = self.file.shown_size()
        return WriteStat(
            file_id=self.file_id, path=self.file.path, partition_path=task.partition, num_writes=rows,
            num_inserts=rows, total_write_bytes=size_bytes, file_size_in_bytes=size_bytes,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewFile:
    """The base file of a new file group, to be written row by row. Whoever writes it enters `writer`."""

    group: NewGroup
    writer: BaseFileWriter

    @classmethod
    def begin(
        cls, store: Storage, target: ClusteringTarget, task: GroupTask, file_id: str, task_attempt: int
    ) -> "NewFile":
        group = NewGroup.begin(store, target, task, file_id, task_attempt)
        writer = BaseFileWriter(
            store, group.file.path, target.schema, target.avro_schema, target.settings,
            constants={FILE_NAME: group.name}, bloom=target.settings.new_bloom(),
            before_visible=group.file.refuse_when_given_up,
        )  # fmt: skip
        return cls(group, writer)

    def write(self, rows: pa.RecordBatch) -> None:
        self.writer.write(rows.select(self.writer.given.names), new_keys=rows.column(RECORD_KEY))

    def stat(self, task: GroupTask) -> WriteStat:
        return self.group.stat(task, rows=self.writer.rows)
