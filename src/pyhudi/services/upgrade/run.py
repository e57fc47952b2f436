"""Making a table one of another version, under its guard, in one step that counts.

Order: a note of what is being done; the metadata table goes; the timeline and the history are copied to the form of the
other version, beside those that count; the properties are replaced, and from then on the table is one of the other
version; what counts no more is removed. A crash before the properties are replaced leaves the table as it was, without
its metadata table, whose indexes the next writer makes. A crash after it leaves the note, and `finish` does the rest.
Spec: format/versions.md section 3.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.errors import Conflict, CorruptFile, NotFound
from pyhudi.format.names import HOODIE, BaseFileName, LogFileName, join
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.kinds.record_index import has_partitioned
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.services.compaction.plan_copies import remove_plan_copies
from pyhudi.services.indexing.plans import lists_of
from pyhudi.services.metadata.lists import put_definitions
from pyhudi.services.upgrade.completion_times import TIMES
from pyhudi.services.upgrade.path import changed_properties, versions_between
from pyhudi.services.upgrade.stored_options import refuse_unfit_options, unfit_options
from pyhudi.services.upgrade.timeline_copy import (
    copy_history,
    copy_schema_histories,
    copy_timeline,
    remove_timeline,
    timeline_files,
)
from pyhudi.storage.protocol import DatedStorage, Storage
from pyhudi.table.facts.config import (
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    METADATA_PARTITIONS_LOST,
    TableConfig,
    table_config,
)
from pyhudi.table.facts.properties_file import replace_table_properties
from pyhudi.table.view.listing import walk
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.layout import TimelineLayout, layout_of
from pyhudi.txn.action.session import WriteSession, refuse_unwritable
from pyhudi.versions import TIMELINE_KINDS, LogNaming, TableVersion

log = logging.getLogger("pyhudi")

NOTE = join(HOODIE, ".pyhudi_version_change")
"""What a change of version is about to do. It is there from the first step to the last."""


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A change of version under way. `indexes`: the partitions that the metadata table had before."""

    before: int
    after: int
    indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VersionResult:
    """What an upgrade or a downgrade did, or would do.

    `before`, `after`: the versions. `steps`: what was done, or is to be done, in words; none where the table has the
    version already. `is_dry_run`: nothing was done.
    """

    before: int
    after: int
    steps: tuple[str, ...]
    is_dry_run: bool = False


def read_note(storage: Storage) -> VersionChange | None:
    """The change of version that is under way, or died. One get."""
    try:
        content = storage.get(NOTE)
    except NotFound:
        return None
    try:
        noted = json.loads(content)
        return VersionChange(int(noted["before"]), int(noted["after"]), tuple(map(str, noted["indexes"])))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFile(NOTE, 0, expected="a note of a change of version", found=repr(error)) from error


def steps_in_words(snapshot: Snapshot, target: TableVersion, callers: Mapping[str, str]) -> tuple[str, ...]:
    """What a change of version would do. `callers`: the options of the call and of its handle.

    Raises: as `changed_properties` and `refuse_unfit_options`, before anything is done.
    """
    config = snapshot.config
    if config.version == target:
        return ()
    after = changed_properties(config, target)
    now = table_config(after, path=snapshot.storage.location.uri)
    refuse_unwritable(now, snapshot.storage.location.uri)
    refuse_unfit_options(now, callers)

    pending = [f"finish {one.action} '{one.requested}', which is pending" for one in snapshot.timeline.pending]
    logs = ["compact every file slice that has logs"] if config.is_merge_on_read else []
    has_metadata = ["drop the metadata table, to be made anew at the end"] if config.has_metadata_table else []
    source, wanted = config.version.timeline, target.timeline
    moved = [
        f"copy {sum(1 for _ in snapshot.timeline)} instants of the timeline, and the history, from the layout of "
        f"version {config.version} to that of version {target}",
    ] if source != wanted else []  # fmt: skip
    old_logs = ["clean away older file slices, if they have logs"] if _slices_otherwise(snapshot, target) else []
    gone = unfit_options(config.properties, target)
    names = sorted((config.properties.keys() | after.keys()) - gone)
    changed = [name for name in names if config.properties.get(name) != after.get(name)]
    path = " -> ".join(map(str, versions_between(config.version, target)))
    lost = _indexes_without_form(snapshot, target)
    return (
        *pending, *logs, *old_logs, *has_metadata, *moved,
        f"replace the table's properties, {path}: {', '.join(changed)}",
        *([f"take away options that version {target} cannot follow: {', '.join(sorted(gone))}"] if gone else []),
        *(["remove the timeline of before"] if moved else []),
        *(["make the metadata table anew, with its indexes"] if has_metadata else []),
        *([f"leave out indexes that version {target} has not: {', '.join(sorted(lost))}"] if lost else []),
    )  # fmt: skip


def change_version(session: WriteSession, target: TableVersion) -> VersionChange:
    """Make the table one of another version. Its metadata table is left to `finish`.

    Raises: Conflict where anything is pending, or a slice has logs; as `changed_properties`.
    """
    snapshot, storage = session.snapshot, session.access.storage
    config, uri = snapshot.config, session.access.location.uri
    after = changed_properties(config, target) | {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ""}
    after.pop(METADATA_PARTITIONS_LOST, None)
    now = table_config(after, path=uri)
    refuse_unwritable(now, uri)
    _refuse_busy(snapshot)
    if name := find_log_out_of_place(snapshot, target):
        raise Conflict(
            f"{uri}: the log '{name}' of an older file slice is still there, and readers of version {target} would lay "
            "it upon the newest slice: delete the savepoints that hold such logs, then run this again"
        )

    lost = _indexes_without_form(snapshot, target)
    indexes = tuple(name for name in config.metadata_partitions_kept if name not in lost)
    change = VersionChange(config.version.number, target.number, indexes)
    session.hold.confirm()
    storage.put(NOTE, json.dumps({"before": change.before, "after": change.after, "indexes": list(indexes)}).encode())

    ends = _ends_of_slices(snapshot, now.layout)
    lists_of(session).give_up_table()

    if config.layout.kind != now.layout.kind:
        _copy(session, config.layout, now.layout, ends)
    session.hold.confirm()
    replace_table_properties(storage, after, epoch_ms=session.access.clock.now_ms())
    log.info("%s: table version %s is %s now", uri, config.version, target)
    sweep(storage, now)
    return change


def _indexes_without_form(snapshot: Snapshot, target: TableVersion) -> set[str]:
    """The indexes of the table that the version has not, or has not in their form.

    Example: a record index by partition would become one of the whole table, which knows one row of each key, and
    the rows of other partitions would be found no more. The definitions say which it is, for the metadata table may be
    lost. A get.
    """
    ready = snapshot.config.metadata_partitions_kept
    is_partitioned = has_partitioned(ready, read_definitions(snapshot.storage))
    names = set(ready) - {registry.LISTING}
    return {name for name in names if registry.absent_forms([name], target, is_partitioned=is_partitioned)}


def find_log_out_of_place(snapshot: Snapshot, target: TableVersion) -> str | None:
    """A stored log of an older slice that readers would take for one of the newest slice, by the version's rules.

    Such logs bring rows back that the newest base file has replaced. Seen: on version 6 Apache Hudi 1.x goes by when
    the files of completed instants were modified (`CompletionTimeQueryViewV1`), which is when the table went there.
    0.15.0 goes by names. Where files may be dated, they say the times of before. Requests: listings as for a scan of
    the whole table, if the version slices logs otherwise.
    """
    if not _slices_otherwise(snapshot, target):
        return None
    for partition, files in walk(snapshot.listing):
        for file in files:
            log_name = LogFileName.parse(file.name)
            if log_name is not None and not log_name.is_cdc:
                return join(partition, file.name)
    return None


def _slices_otherwise(snapshot: Snapshot, target: TableVersion) -> bool:
    config, naming = snapshot.config, snapshot.config.version.log_naming
    changes = naming is LogNaming.AFTER_WRITE and target.log_naming is LogNaming.AFTER_SLICE
    return config.is_merge_on_read and changes and not isinstance(snapshot.storage, DatedStorage)


def finish(session: WriteSession, change: VersionChange) -> None:
    """The last steps: the metadata table is made anew, with the indexes that it had. Nothing is under way any more.

    The properties note the indexes first, so that any writer makes them if this dies.
    """
    config, storage = session.snapshot.config, session.access.storage
    _fit_definitions(storage, config.version)
    if change.indexes:
        lists_of(session).put(
            ready=config.metadata_partitions, inflight=config.metadata_partitions_inflight,
            lost={*config.metadata_partitions_lost, *change.indexes},
        )  # fmt: skip
        for participant in session.table.participants:
            participant.begin(session.access.snapshot())

    sweep(storage, config)
    session.hold.confirm()
    storage.delete(NOTE)


def _fit_definitions(storage: Storage, target: TableVersion) -> None:
    """Make the definitions of indexes those of the version, before the indexes are made anew.

    Seen: version 8 knows the first form of an index only; 6 and earlier have no definitions.
    """
    known = read_definitions(storage)
    if not target.has_index_definitions:
        put_definitions(storage, dict.fromkeys(known))
    else:
        fit = {
            name: replace(one, version=target.index_version)
            for name, one in known.items()
            if one.version is None or one.version > target.index_version
        }
        put_definitions(storage, fit)


def sweep(storage: Storage, config: TableConfig) -> None:
    """Remove what counts no more: another layout's timeline, the times that are in its names now, copies of plans."""
    if not config.version.copies_compaction_plans:
        remove_plan_copies(storage)
    if config.layout.has_completion_times:
        storage.delete(TIMES)
    for kind in TIMELINE_KINDS:
        if kind != config.layout.kind:
            other = layout_of(kind, dict(kind.new_folders))
            remove_timeline(storage, other, counts=config.layout)


def _refuse_busy(snapshot: Snapshot) -> None:
    uri = snapshot.storage.location.uri
    if snapshot.timeline.pending:
        one = snapshot.timeline.pending[0]
        raise Conflict(
            f"{uri}: {one.action} '{one.requested}' is pending: expected nothing under way while the table's version "
            "changes; let it end, or roll it back, and run this again"
        )
    if snapshot.config.is_merge_on_read:
        for partition in snapshot.listing.partitions():
            for file_slice in snapshot.slices(partition):
                if file_slice.log_files:
                    raise Conflict(
                        f"{uri}: file group '{file_slice.file_id}' in partition '{partition}' has logs: another writer "
                        "wrote them after the table was compacted; run this again"
                    )


def _ends_of_slices(snapshot: Snapshot, after: TimelineLayout) -> dict[str, str]:
    """Requested time of a write that logs are named after -> that of the next base file of such a file group.

    Once logs are found by completion times, these logs would lie upon that base file, which holds their rows or newer
    ones, if the write seemed to have completed later. Requests: listings as for a scan of the whole table, for a
    merge-on-read table that gets such a layout.
    """
    before = snapshot.config.layout
    if not snapshot.config.is_merge_on_read or before.has_completion_times or not after.has_completion_times:
        return {}
    ends: dict[str, str] = {}
    for _, files in walk(snapshot.listing):
        bases: dict[str, set[str]] = {}
        logs: dict[str, set[str]] = {}
        for name in (file.name for file in files):
            base, log_name = BaseFileName.parse(name), LogFileName.parse(name)
            if base is not None and snapshot.timeline.is_committed(base.requested):
                bases.setdefault(base.file_id, set()).add(base.requested)
            elif log_name is not None:
                logs.setdefault(log_name.file_id, set()).add(log_name.instant)
        for file_id, instants in logs.items():
            for instant in instants:
                later = [base for base in bases.get(file_id, ()) if base > instant]
                if later:
                    ends[instant] = min(*later, ends.get(instant, later[0]))
    return ends


def _copy(session: WriteSession, source: TimelineLayout, target: TimelineLayout, ends: Mapping[str, str]) -> None:
    """Copy timeline and history, unless another tool's writer completes something meanwhile."""
    storage, zone = session.access.storage, session.snapshot.zone
    remove_timeline(storage, target, counts=source)
    before = timeline_files(storage, source)
    copy_history(storage, source, target, confirm=session.hold.confirm)
    replaced = copy_timeline(storage, source, target, zone, ends=ends)
    copy_schema_histories(storage, target)
    after = timeline_files(storage, source)
    changed = {path for path, _ in before.items() ^ after.items()} - replaced
    if changed:
        remove_timeline(storage, target, counts=source)
        raise Conflict(
            f"{session.access.location.uri}: '{min(changed)}' changed while the timeline was copied: another writer is "
            "at work, which does not heed pyhudi's lock; stop it, and run this again"
        )
