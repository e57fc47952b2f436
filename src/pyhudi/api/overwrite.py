"""Making a table anew over one that is there: all or nothing, whatever the rows are.

The new table is written whole to a folder beside the old one. Then the two are exchanged in one step, under the guard
of the old one. Until that step the old table is as it was; a crash leaves a folder that the next overwrite sweeps.
What others wrote to the old table meanwhile would go with it unseen, so the two are not exchanged then.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC

import pyarrow as pa

from pyhudi.api.clock import SYSTEM_CLOCK, random_uuid
from pyhudi.errors import Conflict, HudiError, Unsupported
from pyhudi.format.names import HEARTBEATS, HOODIE, METADATA_TABLE
from pyhudi.format.schema.conversion import META_FIELDS, canonical_arrow
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.storage.exchange import exchange_folders
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import FileInfo, Storage
from pyhudi.storage.uris import LocalUri, parse_uri
from pyhudi.table.facts.bucket_facts import BUCKET_OPTIONS, ENGINE, INDEX_TYPE
from pyhudi.table.facts.config import TableConfig, table_config
from pyhudi.table.facts.creation import NewTable, new_table_properties
from pyhudi.txn.locks.guard import LocalGuard, open_guard
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.txn.locks.providers.registry import provided_guard
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.txn.locks.waiting import awaited_hold

log = logging.getLogger("pyhudi")

_PREFIX = ".pyhudi-overwrite-"
_LOCK_FILE = f"{HOODIE}/lock"
_PURPOSE = "overwriting the table"
_HEARTBEAT_EXPIRES_MS = 180_000
"""How long after its last beat a writer counts as alive that this machine cannot ask: the default of all."""


def has_facts_of(old: TableConfig, new: NewTable) -> bool:
    """Whether a table that options describe is the one that is there: same facts, same layout of rows.

    What the old table stores beside them, such as defaults of writes, does not count: it stays.
    """
    properties = new_table_properties(new)
    said = {name: text for name, text in new.properties.items() if name not in BUCKET_OPTIONS}
    stored = all(old.properties.get(name, "") == text for name, text in properties.items() if name in said)
    same = table_config(properties, path=f"new table '{new.name}'").facts() == old.facts()
    return stored and same and _buckets(properties) == _buckets(old.properties)


def has_columns_of(old: pa.Schema, new: pa.Schema) -> bool:
    """Whether rows have the columns of a table, in the same types, in any order. A table without any takes all."""
    fields = canonical_arrow(pa.schema([field for field in new if field.name not in META_FIELDS]))
    stored = canonical_arrow(old)  # a table's timestamps may count milliseconds
    return not old.names or {f.name: f.type for f in stored} == {f.name: f.type for f in fields}


def _buckets(properties: Mapping[str, str]) -> tuple[str, ...] | None:
    """What says where the rows of a bucket table lie; None for other tables."""
    if properties.get(INDEX_TYPE, "").upper() != "BUCKET":
        return None
    engine = properties.get(ENGINE, "").upper()
    return (
        engine or "SIMPLE",
        *(properties.get(name, "") for name in BUCKET_OPTIONS if name not in (INDEX_TYPE, ENGINE)),
    )


@contextmanager
def replacing_table(path: str, *, wait_ms: int, lock: LockSettings | None = None) -> Iterator[str]:
    """Gives the path to write the new table to; it replaces the old one when the block ends well.

    `wait_ms`: how long to wait for a writer of the old table at most. `lock`: held beside the old table's guard.
    Raises: Conflict while somebody writes to the old table, or has written to it during the block; Unsupported where
    folders cannot be exchanged in one step.
    """
    location = parse_location(path, None)
    parsed = parse_uri(location.uri)
    if not isinstance(parsed, LocalUri):
        raise Unsupported(
            f"{path}: mode('overwrite') with other facts or columns than the table has: expected a table on local "
            "disk, found an object store, which cannot replace a table in one step; write to another path, delete the "
            "table first, or keep its facts and columns"
        )
    root = os.path.realpath(parsed.root)
    storage = open_storage(location)
    with _room_beside(root) as staged:
        before = _timeline_files(storage)
        yield staged

        own = open_guard(location, clock=SYSTEM_CLOCK, new_uuid=random_uuid)
        guard = provided_guard(lock, location, clock=SYSTEM_CLOCK, new_uuid=random_uuid, own=own)
        with awaited_hold(guard, _PURPOSE, clock=SYSTEM_CLOCK, wait_ms=wait_ms) as hold:
            _refuse_living_writers(path, storage, LifeTerms(guard, SYSTEM_CLOCK.now_ms(), _HEARTBEAT_EXPIRES_MS))
            if _timeline_files(storage) != before:
                raise Conflict(
                    f"{path}: expected no other writer, found that the table was changed while the new one was "
                    "written; read it again, then overwrite again"
                )
            hold.confirm()
            exchange_folders(root, staged)


@contextmanager
def _room_beside(root: str) -> Iterator[str]:
    """A path for a new table in a folder of its own beside `root`. The folder goes, with what lies there then."""
    parent, name = os.path.split(root)
    _sweep(parent, name)
    room = os.path.join(parent, f"{_PREFIX}{name}-{random_uuid()}")
    with LocalGuard(room).acquire(_PURPOSE, _now()):
        try:
            yield os.path.join(room, "table")
        finally:
            _delete(room)
    if os.path.exists(room):
        log.warning("%s: could not be deleted; the next overwrite of '%s' tries again", room, root)


def _sweep(parent: str, name: str) -> None:
    """Delete what overwrites left that died: nobody holds the guard of their folder."""
    for entry in os.scandir(parent):
        if not entry.name.startswith(f"{_PREFIX}{name}-") or not entry.is_dir(follow_symlinks=False):
            continue
        with suppress(Conflict), LocalGuard(entry.path).acquire(_PURPOSE, _now()):
            _delete(entry.path)


def _delete(room: str) -> None:
    """Delete a folder however deep it is, or what can be deleted of it: the next overwrite tries again."""
    with suppress(HudiError):
        open_storage(parse_location(room, None)).delete_prefix("")


def _timeline_files(storage: Storage) -> set[FileInfo]:
    """What shows that a table was changed: its properties and its timeline, wherever in `.hoodie` that lies.

    The listing reads no file, so it works for tables that pyhudi cannot read, too. Files and folders with a dot are
    locks, heartbeats and markers, and so is the file of Apache Hudi's lock provider.
    """
    folders = [folder for folder in storage.list_folders(HOODIE) if folder != METADATA_TABLE]
    seen = [HOODIE, *(folder for folder in folders if not _is_hidden(folder))]
    return {
        file
        for folder in seen
        for file in storage.list(folder)
        if not _is_hidden(file.path) and file.path != _LOCK_FILE
    }


def _is_hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")


def _refuse_living_writers(path: str, storage: Storage, life: LifeTerms) -> None:
    """Raises: Conflict while a write or a service is running, of pyhudi or of Apache Hudi."""
    for file in storage.list(HEARTBEATS):
        requested = file.path.rpartition("/")[2]
        if life.living(storage, requested) is not None:
            raise Conflict(
                f"{path}: expected no other writer, found instant '{requested}' with a living heartbeat; wait for "
                "it to end, then overwrite again"
            )


def _now() -> str:
    return format_instant(SYSTEM_CLOCK.now_ms(), UTC)
