"""Putting the layers together: how a table is reached, and who takes part in its commits."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import tzinfo

from pyhudi.api.clock import SYSTEM_CLOCK, process_zone, random_uuid
from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.format.properties import is_utf8
from pyhudi.index.own.protocol import IndexOf, find_index, is_own_index
from pyhudi.metadata.kinds.registry import index_pruners
from pyhudi.metadata.store.files_partition import is_metadata_table_gone, open_listing
from pyhudi.metadata.store.indexes import open_indexes
from pyhudi.options.read_options import SkippingOptions
from pyhudi.options.resolve import option_texts
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.metadata.upkeep import MetadataTableUpkeep
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.prune.data_skipping import DataSkipping
from pyhudi.table.view.commits import SCHEMA
from pyhudi.table.view.listing import FileListing, StorageListing
from pyhudi.table.view.schema_on_read import LATEST_SCHEMA
from pyhudi.table.view.sink_batches import SINK_CHECKPOINT
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.participants import CommitParticipant
from pyhudi.txn.action.schema_history import SchemaHistoryKeeper
from pyhudi.txn.action.session import TableAccess
from pyhudi.txn.locks.guard import Guard, open_guard
from pyhudi.txn.locks.hold import Hold
from pyhudi.txn.locks.providers.registry import provided_guard
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.write.own_index import OwnIndexKeeper
from pyhudi.write.settings import WriteSettings

log = logging.getLogger("pyhudi")
_OWN_ENTRIES = frozenset({SCHEMA, LATEST_SCHEMA, SINK_CHECKPOINT})
_OWN_PREFIX = "_pyhudi"
"""Entries of pyhudi's own begin so, such as the one that tells a stream's query."""

_told: set[str] = set()
"""The experimental tables that this process has warned of."""


def note_experimental(config: TableConfig, uri: str) -> None:
    """Log, once for each table, that its version is one that no release of Apache Hudi has."""
    if config.version.is_experimental and uri not in _told:
        _told.add(uri)
        log.warning(
            "%s: table version %s is experimental: it follows a text, and no release of Apache Hudi reads such tables",
            uri, config.version,
        )  # fmt: skip


def table_access(
    path: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    storage: Storage | None = None,
    clock: Clock | None = None,
    random: Callable[[], str] | None = None,
    lock: Guard | None = None,
) -> TableAccess:
    location = storage.location if storage is not None else parse_location(path, storage_options)
    clock = clock if clock is not None else SYSTEM_CLOCK
    new_uuid = random if random is not None else random_uuid
    return TableAccess(
        storage=storage if storage is not None else open_storage(location),
        location=location,
        guard=lock if lock is not None else open_guard(location, clock=clock, new_uuid=new_uuid),
        clock=clock,
        new_uuid=new_uuid,
        process_zone=process_zone,
        open_listing=open_listing,
    )


def locked_access(access: TableAccess, lock: LockSettings | None) -> TableAccess:
    """How a writer reaches a table that holds this lock beside the table's own guard; None: no other."""
    guard = provided_guard(lock, access.location, clock=access.clock, new_uuid=access.new_uuid, own=access.guard)
    return replace(access, guard=guard, shares_lock=lock is not None and lock.provider.reaches_others)


def list_storage(storage: Storage, config: TableConfig, timeline: Timeline, zone: tzinfo) -> FileListing:
    """The listing that asks the storage, whatever the metadata table knows."""
    return StorageListing(storage, nests=config.may_nest_partitions)


def data_skipping(
    access: TableAccess, snapshot: Snapshot, options: Mapping[str, object], executor: Executor
) -> DataSkipping | None:
    """The indexes that a query of the latest rows may prune by; None where the options leave them alone, or none is.

    Raises: Invalid for options that are none.
    """
    asked = SkippingOptions.from_options(option_texts(options))
    if not asked.is_on or access.open_listing is list_storage or not snapshot.config.has_ready_indexes:
        return None
    indexes = open_indexes(access.storage, snapshot.config, snapshot.timeline, snapshot.zone, executor=executor)
    if indexes is None:
        return None
    return DataSkipping(index_pruners(indexes, snapshot), indexes.is_current, indexes.are_there, asked.falls_back)


def metadata_upkeep(
    access: TableAccess,
    snapshot: Snapshot,
    issue_instant: Callable[[], str],
    settings: WriteSettings,
    clean: CleanSettings,
    hold: Hold,
    executor: Executor,
    readers: Executor | None = None,
) -> MetadataTableUpkeep:
    """`readers`: of data files, where a new index is built; None: `executor`.

    A metadata table that the properties name and that is gone is no longer named from now on.
    """
    upkeep = MetadataTableUpkeep(
        storage=access.storage,
        clock=access.clock,
        zone=snapshot.zone,
        issue_instant=issue_instant,
        is_enabled=settings.metadata_enabled,
        deltacommits_max=settings.metadata_deltacommits_max,
        log_blocks_min=settings.metadata_log_blocks_min,
        clean=clean,
        hold=hold,
        executor=executor,
        readers=readers or executor,
        indexes=settings.indexes,
        finds_keys=settings.index_type != "BUCKET",
        source_folder=access.source_folder,
    )
    if is_metadata_table_gone(snapshot):
        upkeep.give_up()
    return upkeep


def commit_participants(
    access: TableAccess,
    snapshot: Snapshot,
    issue_instant: Callable[[], str],
    settings: WriteSettings,
    clean: CleanSettings,
    hold: Hold,
    executor: Executor,
    readers: Executor | None = None,
) -> list[CommitParticipant]:
    """Who takes part in a table's commits: its metadata table, the history of its columns, an index of the user's."""
    upkeep = metadata_upkeep(access, snapshot, issue_instant, settings, clean, hold, executor, readers)
    history = SchemaHistoryKeeper(access.storage, access.snapshot, issue_instant, hold.confirm)
    parts: list[CommitParticipant] = [upkeep, history]
    name = settings.index_class
    if not name:
        return parts
    if not is_own_index(name):  # a service looks no keys up
        log.warning("%s: index '%s' is not registered here; the next write tells it", snapshot.config.name, name)
        return parts
    own = IndexOf(access.storage.location.uri, snapshot.config.name)
    return [
        *parts,
        OwnIndexKeeper(find_index(name), own, access.snapshot, hold.confirm, executor, readers or executor),
    ]


def commit_texts(extra_metadata: Mapping[str, str] | None) -> dict[str, str]:
    """What a caller puts into a commit beside the table's own entries.

    Raises: Invalid for anything but texts by names, and for a name that readers give a meaning to: they find columns,
    and the batches of streams, by it. Checkpoints of Apache Hudi's streamer are the caller's: no reader looks at them.
    """
    if extra_metadata is not None and not isinstance(extra_metadata, Mapping):
        raise Invalid(f"extra_metadata={extra_metadata!r}: expected a mapping of text to text")
    extra = dict(extra_metadata or {})
    given: Iterable[tuple[object, object]] = extra.items()
    for name, said in given:
        what, one = ("a name", name) if not isinstance(name, str) else (f"the value of {name!r}", said)
        if not isinstance(one, str):
            raise Invalid(f"extra_metadata: expected a text as {what}, found {one!r}; give a text of it")
    for key, value in extra.items():
        if not (is_utf8(key) and is_utf8(value)):
            raise Invalid(f"extra_metadata: expected text that UTF-8 can spell, found {key!r}: {value!r}")
        if key in _OWN_ENTRIES or key.startswith(_OWN_PREFIX):
            raise Invalid(f"extra_metadata: '{key}' is an entry of the table's own; choose another name")
    return extra


def attempt_number(new_uuid: Callable[[], str]) -> int:
    """A number that tells attempts at one action apart, below 2^28, as write tokens may have."""
    return int(new_uuid().replace("-", "")[:7], 16)
