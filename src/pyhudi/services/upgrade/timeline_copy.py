"""Copies a timeline from the folder and form of one layout to those of another, beside the one that counts.

The copy counts once the table's properties name its layout. Versions 6 and 7 have their timelines in the same folder:
the names of completed files differ, and the files of earlier states are shared.
Spec: format/versions.md section 3, "7→8" and "8→7".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo

from pyhudi.format.timeline.action_files import decode_commit, encode_clean_metadata, encode_rollback_metadata
from pyhudi.format.timeline.archived_log import (
    ArchivedEntry,
    ArchivedState,
    archived_clean,
    archived_commit,
    archived_rollback,
)
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.instant_text import format_instant, parse_instant_ms
from pyhudi.format.timeline.lsm import HistoryFileName
from pyhudi.format.timeline.records import MOVES
from pyhudi.services.upgrade.completion_times import CompletionTimes, keep_times, read_times
from pyhudi.storage.protocol import Storage, set_modified
from pyhudi.table.view.schema_on_read import SCHEMA_FOLDER, list_history
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.timeline.log_history import append_states, read_entries, remove_logs
from pyhudi.timeline.lsm_history import LsmHistory
from pyhudi.timeline.lsm_writer import ArchivedAction, append_actions, remove_sorted_files
from pyhudi.versions import CommitForm, HistoryForm

_BATCH_INSTANTS = 500
_CLUSTERING, _REPLACE = "clustering", "replacecommit"


def timeline_files(storage: Storage, layout: TimelineLayout) -> dict[str, int]:
    """The paths of a timeline's files, with when they were modified. One list request."""
    files = storage.list(layout.folder)
    return {file.path: file.modified_ms for file in files if layout.parse(file.path.rpartition("/")[2]) is not None}


def remove_timeline(storage: Storage, layout: TimelineLayout, *, counts: TimelineLayout) -> None:
    """Remove a timeline that does not count: of a layout that the table does not have yet, or has no more.

    `counts`: the layout that the table has. Files that are part of its timeline, too, stay. So does the history in
    logs, as Apache Hudi leaves it.
    """
    if layout.kind.has_own_folder:
        storage.delete_prefix(layout.folder)
        return
    files = timeline_files(storage, layout)
    shared = timeline_files(storage, counts) if counts.folder == layout.folder else {}
    storage.delete_many(path for path in files if path not in shared)
    if counts.history_folder == layout.history_folder and layout.kind.history is HistoryForm.SORTED_FILES:
        remove_sorted_files(storage, layout.history_folder)


def copy_timeline(
    storage: Storage, source: TimelineLayout, target: TimelineLayout, zone: tzinfo, *, ends: Mapping[str, str]
) -> frozenset[str]:
    """Copy the active timeline. Returns the paths of files that the layouts share and that have new contents.

    Such a file is one of an earlier state of an instant that is completed. It is replaced where the target cannot read
    it: layout 1 reads no Avro, and the others read JSON, too.
    Requests: a get and a put for each file.

    From layout 1, when a file was modified is taken for when its instant completed, as Apache Hudi does; a copied file
    may be older than its own instant, and then completes right after it. An instant that came from layout 2 has its
    completion time of there. A write that was requested before another completes before it, too, however late their
    files are dated. `ends`: requested times of writes that completed before the times here, whatever the dates
    of their files say: those of a table that was copied are all later. To layout 1, the copy is dated accordingly where
    the storage allows it. Seen: 1.2.0 lays the logs of older slices upon the newest base files otherwise
    (`HoodieFileGroup.getBaseInstantTime`).
    """
    files = timeline_files(storage, source)
    found = {path: instant for path in files if (instant := source.parse(path.rpartition("/")[2])) is not None}
    if source.has_completion_times and not target.has_completion_times:
        keep_times(storage, found.values())
    times = CompletionTimes({}) if source.has_completion_times else read_times(storage)
    clusterings = {
        instant.requested
        for path, instant in found.items()
        if instant.action == _REPLACE and instant.is_completed
        and decode_commit(storage.get(path), path=path).operation_type in MOVES
    }  # fmt: skip
    dates = {} if source.has_completion_times else _completion_dates(found, files, times, zone, ends)
    replaced: set[str] = set()
    for path, instant in found.items():
        if not instant.is_completed and target.folder == source.folder and target.kind.commits is CommitForm.AVRO:
            continue
        content = stored = storage.get(path)
        if instant.action in WRITE_ACTIONS and content and not _is_plan(instant):
            content = target.encode_commit(decode_commit(content, path=path))
        completed = instant.completed or dates.get(path)
        named = replace(instant, action=_action(instant, target, clusterings), completed=completed, is_legacy=False)
        copy = target.path(named)
        if copy in found:
            assert not instant.is_completed, f"'{path}' is a completed instant of both layouts"
            if content == stored:
                continue
            replaced.add(copy)
        storage.put(copy, content)
        if instant.completed is not None and not target.has_completion_times:
            set_modified(storage, copy, parse_instant_ms(instant.completed, zone))
    return frozenset(replaced)


def _completion_dates(
    found: Mapping[str, Instant],
    files: Mapping[str, int],
    times: CompletionTimes,
    zone: tzinfo,
    ends: Mapping[str, str],
) -> dict[str, str]:
    """When each completed instant of layout 1 completed, by path: in `times`, or from when its file was modified.

    Of writes, dates rise with requested times. A tool that copies a table dates its files anew, in any order; then a
    restore would take back what was written before its target, and keep what was written after.
    """
    dates: dict[str, str] = {}
    later: str | None = None
    for path, instant in sorted(found.items(), key=lambda one: one[1].requested, reverse=True):
        if not instant.is_completed:
            continue
        known, dated = times.of(instant), format_instant(files[path], zone)
        if known is None and instant.action in WRITE_ACTIONS:
            bounds = (bound for bound in (later, ends.get(instant.requested)) if bound is not None)
            dated = min((dated, *(format_instant(parse_instant_ms(bound, zone) - 1, zone) for bound in bounds)))
            later = max(dated, instant.requested)
        dates[path] = known or max(dated, instant.requested)
    return dates


def copy_schema_histories(storage: Storage, target: TimelineLayout) -> None:
    """Give the histories of columns the names that the other layout has for them. Those of before stay beside them.

    Seen: 0.15.0 looks for `<requested>.schemacommit` alone.
    """
    layout = replace(target, folder=SCHEMA_FOLDER)
    for file in list(list_history(storage)):
        if file.is_completed:
            named = Instant(file.requested, "schemacommit", "COMPLETED", file.requested)
            storage.put_new(layout.path(named), storage.get(file.path))


def _is_plan(instant: Instant) -> bool:
    return instant.action == _REPLACE and instant.state == "REQUESTED"


def _action(instant: Instant, target: TimelineLayout, clusterings: set[str]) -> str:
    """The action in the name of a file. Layout 1 calls the pending files of a clustering like other replacements."""
    if instant.is_completed or instant.action not in (_CLUSTERING, _REPLACE):
        return instant.action
    if instant.action == _CLUSTERING or instant.requested in clusterings:
        return target.kind.clustering
    return instant.action


def copy_history(
    storage: Storage, source: TimelineLayout, target: TimelineLayout, *, confirm: Callable[[], None]
) -> None:
    """Copy the archived instants. What lies in the target's folder of a former time is replaced.

    Memory: the archived instants of layout 1; a batch of those of layout 2.
    """
    _remove_history(storage, target)
    match source.kind.history, target.kind.history:
        case HistoryForm.LOGS, HistoryForm.SORTED_FILES:
            _from_logs(storage, source, target, confirm)
        case HistoryForm.SORTED_FILES, HistoryForm.LOGS:
            _to_logs(storage, source, target, confirm)
        case HistoryForm.SORTED_FILES, HistoryForm.SORTED_FILES:
            _between_sorted_files(storage, source, target, confirm)
        case forms:
            raise AssertionError(f"no two layouts have histories of the forms {forms}")


def _remove_history(storage: Storage, layout: TimelineLayout) -> None:
    """Remove the history of one form. The one of another form may lie in the same folder, and count."""
    match layout.kind.history:
        case HistoryForm.LOGS:
            remove_logs(storage, layout.history_folder)
        case HistoryForm.SORTED_FILES:
            remove_sorted_files(storage, layout.history_folder)


def _from_logs(storage: Storage, source: TimelineLayout, target: TimelineLayout, confirm: Callable[[], None]) -> None:
    entries = sorted(
        read_entries(storage, source.history_folder),
        key=lambda one: (one[0].instant.requested, one[0].instant.action),
    )
    times = read_times(storage)
    for start in range(0, len(entries), _BATCH_INSTANTS):
        batch = entries[start : start + _BATCH_INSTANTS]
        actions = [_archived_action(target, entry, path, times) for entry, path in batch]
        append_actions(storage, target.history_folder, actions, _name_of(target, actions), confirm=confirm)


def _name_of(target: TimelineLayout, actions: Sequence[ArchivedAction]) -> HistoryFileName:
    completed = max(action.instant.completed or action.instant.requested for action in actions)
    return target.history_name(actions[0].instant, actions[-1].instant, completed)


def _between_sorted_files(
    storage: Storage, source: TimelineLayout, target: TimelineLayout, confirm: Callable[[], None]
) -> None:
    """From one history in sorted files to another: the contents of commits have the form of the target, plans stay."""
    history = LsmHistory(storage, source.history_folder, names_bound=source.has_sorted_history)
    instants = history.instants()
    for start in range(0, len(instants), _BATCH_INSTANTS):
        actions = [_moved_action(history, one, target) for one in instants[start : start + _BATCH_INSTANTS]]
        append_actions(storage, target.history_folder, actions, _name_of(target, actions), confirm=confirm)


def _moved_action(history: LsmHistory, instant: Instant, target: TimelineLayout) -> ArchivedAction:
    content, path = history.read_content(instant)
    if instant.action in WRITE_ACTIONS and content:
        content = target.archived_commit(target.encode_commit(decode_commit(content, path=path)), path=path)
    return ArchivedAction(instant, content or None, history.read_plan(instant))


def _archived_action(target: TimelineLayout, entry: ArchivedEntry, path: str, times: CompletionTimes) -> ArchivedAction:
    content: bytes | None = None
    match entry.instant.action:
        case "commit" | "deltacommit" | "replacecommit":
            content = target.archived_commit(target.encode_commit(archived_commit(entry, path=path)), path=path)
        case "clean" if (clean := archived_clean(entry, path=path)) is not None:
            content = encode_clean_metadata(clean)
        case "rollback" if (rollback := archived_rollback(entry, path=path)) is not None:
            content = encode_rollback_metadata(rollback)
    completed = times.of(entry.instant) or entry.instant.completed
    return ArchivedAction(replace(entry.instant, completed=completed), content, None)


def _to_logs(storage: Storage, source: TimelineLayout, target: TimelineLayout, confirm: Callable[[], None]) -> None:
    history = LsmHistory(storage, source.history_folder, names_bound=source.has_sorted_history)
    instants = history.instants()
    for start in range(0, len(instants), _BATCH_INSTANTS):
        states = _states(history, instants[start : start + _BATCH_INSTANTS])
        append_states(storage, target.history_folder, states, confirm=confirm)


def _states(history: LsmHistory, instants: tuple[Instant, ...]) -> Iterator[ArchivedState]:
    for instant in instants:
        content, path = history.read_content(instant)
        yield ArchivedState(instant, instant.completed or instant.requested, content, path)
