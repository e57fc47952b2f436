"""What all file groups of one write share, and what each of them reports. Frozen and picklable: it travels to tasks."""

from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.format.names import MarkerKind
from pyhudi.merge.rules import MergeRules
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.log_settings import LogSettings


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What all file groups of one write share. Picklable.

    `schema`, `avro_schema`: rows as stored, meta fields included. `ordering`: the columns that settle
    rows of one key; empty: the last to arrive wins. `compares_stored`: ordering also decides against
    the stored row (event-time ordering). `combines`: one row a key within the input. `matches_keys`:
    rows of a key that is stored replace it (upsert, delete); otherwise all are new (insert). `drops_marked`: rows that
    `_hoodie_is_deleted` marks are not stored, and take what is stored of their key along. `sorts_rows`: a new
    file group's rows go by record key; otherwise they stay as they come. `made_keys_prefix`: goes before record
    keys that the writer makes up; empty where columns are the key. `logs`: how logs are written. `log_marker`: the
    kind of their markers. `is_partial`: the rows hold some of the columns only; where a row is stored, its other
    columns keep their values. `rules`: how the table settles rows of one key, and what marks a row as deleted; where a
    row wins whole, `ordering` and `compares_stored` say as much. `reading`: how the logs of slices are read; None for a
    table without logs.
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


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """What became of one file: names and counts, the only thing that returns from a task.

    `previous_instant`, `previous_file`: of the base file that it was rewritten from. `log_version`: of a log file,
    whose `writes` are the rows in it and `inserts` those that were planned as new; None for a base file.
    """

    bucket: int
    partition: str
    file_id: str
    file_name: str
    previous_instant: str | None
    previous_file: str | None
    writes: int
    inserts: int
    updates: int
    deletes: int
    size_bytes: int
    log_version: int | None = None
