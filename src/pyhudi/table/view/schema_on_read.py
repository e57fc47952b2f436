"""Tables of schema-on-read evolution: the history of their columns, with the number of each column.

Older files hold columns under the names of their time. Only the history tells which column is which. Each write of such
a table puts a file with the whole history, and states the newest schema in its commit.
Spec: format/layout.md section 8.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyhudi.errors import CorruptFile
from pyhudi.format.names import HOODIE, join
from pyhudi.format.schema.history import NumberedSchema, SchemaHistory, parse_history, parse_schema_text
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline

LATEST_SCHEMA = "latest_schema"
"""The key under which a write to a table with such a history states its schema."""

SCHEMA_FOLDER = join(HOODIE, ".schema")
SCHEMA_SUFFIX = ".schemacommit"

_STATED = "latest_schema of a commit"
_BROKEN = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file of `.hoodie/.schema`. `requested`: of the write that put it."""

    path: str
    requested: str

    @property
    def is_completed(self) -> bool:
        return self.path.endswith(SCHEMA_SUFFIX)


def list_history(storage: Storage) -> Iterator[HistoryFile]:
    """The files of a table's schema history, pending ones included. One list request."""
    for file in storage.list(SCHEMA_FOLDER):
        name = file.path.rpartition("/")[2]
        requested = name.partition(".")[0].partition("_")[0]
        if SCHEMA_SUFFIX in name and requested.isdecimal():
            yield HistoryFile(file.path, requested)


def find_history(storage: Storage, timeline: Timeline) -> str | None:
    """The path of the newest history that counts. None if there is none. One list request.

    A history counts once its write is complete. One of a write that died, or was taken back, may lie beside it. Writes
    from before the oldest active instant are archived, and were complete.
    Seen: 1.0.2 keeps the newest alone, so that one from beyond a query's moment stands in: its older schemas are the
    same.
    """
    oldest = min((instant.requested for instant in timeline), default="")
    until = timeline.until
    counted = [
        file.path
        for file in list_history(storage)
        if file.is_completed
        and (
            file.requested in timeline.completed_requested_times
            or file.requested < oldest
            or (until is not None and file.requested > until)
        )
    ]
    return max(counted, default=None)


def read_history(storage: Storage, timeline: Timeline, latest: str) -> SchemaHistory:
    """The schemas of a table. `latest`: the newest, as the newest commit states it.

    One list request and one get. Raises: CorruptFile for a history that does not read.
    """
    newest = parse_latest(latest)
    path = find_history(storage, timeline)
    if path is None:
        return SchemaHistory((newest,))
    history = parse_stored(path, storage.get(path))
    return history.with_newest(newest) if newest.since > history.schemas[0].since else history


def parse_latest(text: str) -> NumberedSchema:
    """The schema that a commit states under `latest_schema`. Raises: CorruptFile for a text that is none."""
    try:
        return parse_schema_text(text)
    except _BROKEN as error:
        raise CorruptFile(_STATED, 0, expected="a numbered schema as JSON", found=repr(error)) from error


def refuse_others(latest: str, columns: Iterable[str]) -> None:
    """Raises: CorruptFile for a stated schema that does not number each of these columns, the table's own.

    Readers find a file's columns by numbers. One without a number would be read as null, the record key too.
    """
    newest = parse_latest(latest)
    for name in columns:
        if newest.named(name) is None:
            found = ", ".join(column.name for column in newest.columns) or "no columns"
            raise CorruptFile(_STATED, 0, expected=f"a number for each column, '{name}' too", found=found)


def parse_stored(path: str, content: bytes) -> SchemaHistory:
    """The history in a file. Raises: CorruptFile for another content."""
    try:
        return parse_history(content)
    except _BROKEN as error:
        raise CorruptFile(path, 0, expected="a history of schemas as JSON", found=repr(error)) from error
