"""What all file groups of one write share, and what each of them reports. Frozen and picklable, to be sent to tasks."""

from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.format.log.changes import ChangeMode
from pyhudi.format.names import MarkerKind
from pyhudi.merge.rules import MergeRules
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.log_settings import LogSettings


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What all file groups of one write share. Picklable.

    `schema`, `avro_schema`: rows as stored, with meta fields. `ordering`: the columns that decide between rows of one
    key; empty: the last to arrive wins. `compares_stored`: ordering also decides against the stored row (event-time
    ordering). `combines`: one row a key remains of the input. `matches_keys`: a row replaces the stored row of its key
    (upsert, delete); if off, all rows are new (insert). `drops_marked`: rows that `_hoodie_is_deleted` marks are not
    stored, and delete the stored row of their key. `sorts_rows`: the rows of a new file group are sorted by record key;
    if off, they stay as they come. `made_keys_prefix`: begins the record keys that the writer makes up; empty where
    columns are the key. `logs`: how logs are written. `log_marker`: the kind of their markers. `is_partial`: the rows
    hold only some of the columns; a stored row keeps its values in the others. `rules`: how the table merges rows of
    one key, and what marks a row as deleted; where a row wins whole, `ordering` and `compares_stored` say as much.
    `reading`: how the logs of slices are read; None for a table without logs. `change_mode`: what the change logs of
    rewritten files hold; None for a table that keeps none. `as_written`: how stored files may differ from `schema`.
    `has_parquet_metafiles`: the files that mark partitions are Parquet files.
    """

    location: StorageLocation
    requested: str
    epoch_ms: int
    schema: pa.Schema
    avro_schema: str
    settings: BaseFileSettings
    ordering: tuple[str, ...]
    compares_stored: bool
    combines: bool
    matches_keys: bool
    drops_marked: bool
    is_delete: bool
    log_marker: MarkerKind
    sorts_rows: bool = False
    made_keys_prefix: str = ""
    logs: LogSettings = field(default_factory=LogSettings)
    is_partial: bool = False
    rules: MergeRules = field(default_factory=MergeRules)
    reading: LogReading | None = None
    change_mode: ChangeMode | None = None
    as_written: AsWritten = TODAY
    has_parquet_metafiles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStatus:
    """What became of one file: names and counts. A task returns nothing else.

    `previous_instant`, `previous_file`: of the base file that was rewritten. `log_version`: of a log file; None for a
    base file. The `writes` of a log file are the rows in it, its `inserts` the rows that were planned as new.
    `change_log`: the name of the change log beside a base file, of `change_log_bytes` bytes.
    """

    task_number: int
    partition: str
    file_id: str
    file_name: str
    previous_instant: str | None = None
    previous_file: str | None = None
    writes: int
    inserts: int
    updates: int
    deletes: int
    size_bytes: int
    log_version: int | None = None
    change_log: str | None = None
    change_log_bytes: int = 0
