"""Which files a clean may delete: pure rules over the timeline and the file slices of a partition."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyhudi.format.names import BaseFileName, LogFileName, group_named
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.table.view.file_system_view import FileSlice, LogSlicing, whole_slices
from pyhudi.table.view.listing import ListedFile
from pyhudi.timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class Protected:
    """What no clean may touch, whatever its policy says.

    `files`: partition and name of each file that a savepoint names. `clustered`: of each that a pending clustering
    names. `compacted_from`: for each file group (partition, file id) in a pending compaction, the base instant of the
    oldest slice that is needed. `readers`: requested times of commits whose readers must find every file. Savepoints
    and indexes in the making read at such times.
    """

    files: frozenset[tuple[str, str]] = frozenset()
    compacted_from: Mapping[tuple[str, str], str] = field(default_factory=dict)
    readers: tuple[str, ...] = ()
    clustered: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class CleanRules:
    """The facts that decide whether a file is deleted.

    `earliest`: the requested time of the earliest commit to retain; None when the policy has no such commit.
    `replaced`: partition -> file id -> requested time of the write that replaced the file group.
    """

    policy: CleanPolicy
    versions_retained: int
    earliest: str | None
    timeline: Timeline
    slicing: LogSlicing
    replaced: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    protected: Protected = field(default_factory=Protected)


@dataclass(frozen=True, slots=True)
class PartitionClean:
    """What a clean deletes in one partition.

    `names`: the files to delete, sorted. `is_replaced`: every file group of the partition was replaced and is deleted
    now, so that the partition becomes empty. `is_held`: replaced file groups stay for now, because a pending action
    needs them.
    """

    names: tuple[str, ...]
    is_replaced: bool
    is_held: bool = False


def earliest_to_retain(
    timeline: Timeline, settings: CleanSettings, *, hours_start: str, previous: str | None
) -> Instant | None:
    """The first completed write that readers may still ask for; None when the policy has no such write.

    `hours_start`: the instant that lies `hours_retained` ago. `previous`: the earliest commit that the last clean
    retained. The result is never later than the last write before a pending write, because the pending write may read
    what was newest when it began.

    Seen: 1.0.2 heeds pending writes for the policy by commits, but not for the policy by hours. Here both heed them.
    Spec: format/actions.md section 7.2.
    """
    writes = timeline.completed_writes
    match settings.policy:
        case CleanPolicy.VERSIONS:
            return None
        case CleanPolicy.COMMITS:
            first = len(writes) - settings.commits_retained
            if first <= 0:
                return None
        case CleanPolicy.HOURS:
            first = next((at for at, write in enumerate(writes) if write.requested >= hours_start), len(writes))
            if first == len(writes):
                return None

    pending = min((i.requested for i in timeline.pending if i.comparable_action in WRITE_ACTIONS), default=None)
    while pending is not None and first >= 0 and writes[first].requested > pending:
        first -= 1
    if first < 0:
        return None

    if settings.commits_per_clean_max is not None and previous is not None:
        done = sum(1 for write in writes if write.requested < previous)
        first = min(first, done + settings.commits_per_clean_max)
    return writes[first]


def plan_partition(partition: str, files: Sequence[ListedFile], rules: CleanRules) -> PartitionClean:
    """The files of a partition that nobody needs any more.

    By commits and by hours, each file group keeps its newest slice, the newest slice before the earliest retained
    commit, and all later slices. Example: slices at times 10, 20, 30 and the earliest retained commit 25; its readers
    see slice 20, so only slice 10 is deleted. By versions, each file group keeps its newest slices. A group that was
    replaced before the earliest retained commit is deleted as a whole.

    Cost: no request; a pass over the names of the partition's files. Spec: format/actions.md section 7.4.
    """
    assert rules.policy is CleanPolicy.VERSIONS or rules.earliest is not None
    replaced = rules.replaced.get(partition, {})
    by_id: dict[str, list[ListedFile]] = {}
    for file in files:
        by_id.setdefault(group_named(file.name), []).append(file)

    # A group with a single file that was not replaced keeps this file: most groups need no look at their slices.
    safe = {file_id for file_id, group_files in by_id.items() if len(group_files) == 1 and file_id not in replaced}
    alone = [by_id.pop(file_id)[0] for file_id in safe]
    doubtful = [file for group_files in by_id.values() for file in group_files]
    by_group = _names_by_group(doubtful)
    slices_of = whole_slices(partition, doubtful, rules.timeline, slicing=rules.slicing)
    # A replaced group may have files of writes that never completed, and no slice.
    groups = {
        file_id: slices_of.get(file_id, ()) for file_id in by_group if file_id in slices_of or file_id in replaced
    }

    gone: set[str] = set()
    has_live = is_held = False
    for file_id, slices in groups.items():
        kept = list(_kept(slices, replaced.get(file_id), rules))
        kept_names = {name for file_slice in kept for name in _names(file_slice, by_group)}
        if _is_whole_group_gone(replaced.get(file_id), rules):
            # Files of writes that never completed are deleted along: once the replacing write is archived, nothing
            # would tell that the group was replaced, and these files would bring it back.
            gone |= set(_names_of_ended(by_group[file_id], rules.timeline)) - kept_names
            is_held |= any(_is_awaited(one, slices, replaced.get(file_id), rules.protected) for one in kept)
        else:
            has_live = True
            outdated = (file_slice for file_slice in slices if file_slice not in kept)
            gone |= {name for file_slice in outdated for name in _names(file_slice, by_group)} - kept_names

    if gone and not has_live:
        has_live = bool(whole_slices(partition, alone, rules.timeline, slicing=rules.slicing))
    return PartitionClean(tuple(sorted(gone)), is_replaced=bool(gone) and not has_live, is_held=is_held)


def groups_gone(partition: str, rules: CleanRules) -> frozenset[str]:
    """The file groups of a partition that were replaced before everything that the policy retains."""
    replaced = rules.replaced.get(partition, {})
    return frozenset(file_id for file_id, at in replaced.items() if _is_whole_group_gone(at, rules))


def needed_by_newest(partition: str, files: Sequence[ListedFile], rules: CleanRules) -> set[str]:
    """The files of a partition that are protected, or that a reader of the newest table state needs."""
    replaced = rules.replaced.get(partition, {})
    by_group = _names_by_group(files)

    needed: set[str] = set()
    for file_id, slices in whole_slices(partition, files, rules.timeline, slicing=rules.slicing).items():
        for file_slice in slices:
            is_newest = file_slice is slices[0] and file_id not in replaced
            if is_newest or _is_protected(file_slice, slices, replaced.get(file_id), rules.protected):
                needed |= set(_names(file_slice, by_group))
    return needed


def _kept(slices: Sequence[FileSlice], replaced_at: str | None, rules: CleanRules) -> Iterator[FileSlice]:
    """The slices of a file group that stay. `slices`: newest first."""
    allowed = set() if _is_whole_group_gone(replaced_at, rules) else _by_policy(slices, replaced_at, rules)
    for at, file_slice in enumerate(slices):
        if at in allowed or _is_protected(file_slice, slices, replaced_at, rules.protected):
            yield file_slice


def _by_policy(slices: Sequence[FileSlice], replaced_at: str | None, rules: CleanRules) -> set[int]:
    """Positions of the slices that the policy keeps. `slices`: of one file group, newest first."""
    if replaced_at is not None:  # a replaced group that stays, stays whole
        return set(range(len(slices)))

    if rules.policy is CleanPolicy.VERSIONS:
        # The slices that a pending compaction needs are protected anyway. Together they count as one version.
        start = _compacted_from(slices[0], rules.protected)
        free = [at for at, file_slice in enumerate(slices) if start is None or file_slice.base_instant < start]
        return set(free[: rules.versions_retained - (start is not None)])

    assert rules.earliest is not None
    recent = {at for at, file_slice in enumerate(slices) if file_slice.base_instant >= rules.earliest}
    before = next((at for at, file_slice in enumerate(slices) if file_slice.base_instant < rules.earliest), 0)
    return {0, before, *recent}


def _is_whole_group_gone(replaced_at: str | None, rules: CleanRules) -> bool:
    if replaced_at is None:
        return False
    return rules.policy is CleanPolicy.VERSIONS or (rules.earliest is not None and replaced_at < rules.earliest)


def _is_protected(
    file_slice: FileSlice, slices: Sequence[FileSlice], replaced_at: str | None, protected: Protected
) -> bool:
    is_saved = _is_named(file_slice, protected.files)
    return is_saved or _is_awaited(file_slice, slices, replaced_at, protected)


def _is_awaited(
    file_slice: FileSlice, slices: Sequence[FileSlice], replaced_at: str | None, protected: Protected
) -> bool:
    """Whether a pending action needs a slice, one of `slices`."""
    start = _compacted_from(file_slice, protected)
    if (start is not None and file_slice.base_instant >= start) or _is_named(file_slice, protected.clustered):
        return True

    for reader in protected.readers:
        seen = next((other for other in slices if other.base_instant <= reader), None)
        if seen is file_slice and (replaced_at is None or replaced_at > reader):
            return True
    return False


def _is_named(file_slice: FileSlice, files: Collection[tuple[str, str]]) -> bool:
    names = [log.name.format() for log in file_slice.log_files]
    if file_slice.base_file is not None:
        names.append(file_slice.base_file.name.format())
    return any((file_slice.partition, name) in files for name in names)


def _compacted_from(file_slice: FileSlice, protected: Protected) -> str | None:
    return protected.compacted_from.get((file_slice.partition, file_slice.file_id))


_ByGroup = Mapping[str, Sequence[tuple[str, str]]]
"""File id -> (instant, name) of each of its files."""


def _names_by_group(files: Sequence[ListedFile]) -> _ByGroup:
    by_group: dict[str, list[tuple[str, str]]] = {}
    for file in files:
        if base := BaseFileName.parse(file.name):
            by_group.setdefault(base.file_id, []).append((base.requested, file.name))
        elif log := LogFileName.parse(file.name):
            by_group.setdefault(log.file_id, []).append((log.instant, file.name))
    return by_group


def _names(file_slice: FileSlice, by_group: _ByGroup) -> Iterator[str]:
    """The files of a slice, and the base files that lost task attempts of the same instant left beside its own."""
    yield from (log.name.format() for log in file_slice.log_files)
    if file_slice.base_file is not None:
        for instant, name in by_group[file_slice.file_id]:
            if instant == file_slice.base_instant and BaseFileName.parse(name) is not None:
                yield name


def _names_of_ended(files: Sequence[tuple[str, str]], timeline: Timeline) -> Iterator[str]:
    """The names of files whose instants are not pending."""
    pending = {instant.requested for instant in timeline.pending}
    return (name for instant, name in files if instant not in pending)
