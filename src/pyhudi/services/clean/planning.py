"""Planning a clean upon a table as it is, and looking at a planned one again."""

import json
from dataclasses import dataclass, replace

from pyhudi.format.names import group_named, join
from pyhudi.format.timeline.records import ActionInstant, CleanerPlan, CleanFileInfo
from pyhudi.services.clean.execution import holds_nothing_but
from pyhudi.services.clean.inputs import HELD, SAVEPOINTED, partitions_to_examine, read_protected, read_savepoints
from pyhudi.services.clean.plan import (
    CleanRules,
    earliest_to_retain,
    groups_gone,
    needed_by_newest,
    plan_partition,
)
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.table.view.cleaned import planned_names
from pyhudi.table.view.commits import read_newest_clean
from pyhudi.table.view.listing import ListedFile, StorageListing
from pyhudi.table.view.snapshot import Snapshot, log_slicing


def plan_clean(
    snapshot: Snapshot, settings: CleanSettings, *, now_ms: int, is_asked: bool, partitions: list[str] | None = None
) -> CleanerPlan | str:
    """The plan of a new clean; or, in words, why there is nothing to do. `partitions`: look only into these.

    `is_asked`: look also for replaced files that earlier cleans have left, and that no listing may tell of.
    Cost: one get for the last clean, and one get each for commits that have left the retained range since then,
    savepoints, pending services and replacecommits. Listings come from the metadata table, or take one list request
    per partition. With `is_asked` the storage lists each partition of a replaced file group.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    last = read_newest_clean(storage, timeline)
    since = last.last_completed_commit if last is not None else ""
    fresh = sum(1 for write in timeline.completed_writes if write.requested > since)
    if not is_asked and fresh < settings.trigger_commits:
        return f"{fresh} commits since the last clean: expected {settings.trigger_commits} (hoodie.clean.trigger.*)"

    earliest = earliest_to_retain(
        timeline,
        settings,
        hours_start=settings.hours_start(now_ms, snapshot.zone),
        previous=(last.earliest_commit_to_retain if last is not None else "") or None,
    )
    if earliest is None and settings.policy is not CleanPolicy.VERSIONS:
        return f"every commit is within what {settings.policy.value} retains"

    savepoints = read_savepoints(storage, timeline)
    rules = _rules(snapshot, settings, earliest.requested if earliest else None)
    left: frozenset[str] = frozenset()
    if partitions is None:
        partitions = partitions_to_examine(
            storage, timeline, last=last, earliest=earliest.requested if earliest else None,
            is_incremental=settings.is_incremental, savepoints=savepoints,
            every_partition=lambda: snapshot.listing.partitions(),
        )  # fmt: skip
        left = frozenset(p for p in rules.replaced if groups_gone(p, rules)) if is_asked else left
        partitions = sorted({*partitions, *left})

    rules = replace(rules, protected=read_protected(storage, timeline, savepoints)) if partitions else rules
    found = _superfluous(snapshot, partitions, rules, left=left)
    if not found.files:
        return "no file is superfluous"

    return CleanerPlan(
        ActionInstant(earliest.requested, earliest.action, "COMPLETED") if earliest else None,
        timeline.completed_writes[-1].requested if timeline.completed_writes else "",
        settings.policy.value,
        file_paths_to_be_deleted_per_partition=found.files,
        partitions_to_be_deleted=tuple(found.emptied),
        extra_metadata={
            **({SAVEPOINTED: ",".join(savepoints.requested)} if savepoints.requested else {}),
            **({HELD: json.dumps(found.held)} if found.held else {}),
        },
    )


@dataclass(frozen=True, slots=True)
class _Superfluous:
    """`files`: to delete, by partition, with absolute paths. `emptied`: partitions that will be empty after that.

    `held`: partitions where replaced file groups stay for a pending action.
    """

    files: dict[str, tuple[CleanFileInfo, ...]]
    emptied: list[str]
    held: list[str]


def _superfluous(
    snapshot: Snapshot, partitions: list[str], rules: CleanRules, *, left: frozenset[str] = frozenset()
) -> _Superfluous:
    """`left`: partitions in which the storage is asked for replaced files that the listing does not tell of."""
    root = snapshot.storage.location.uri.rstrip("/")
    all_found = _Superfluous({}, [], [])
    snapshot.listing.expect(partitions)

    for partition in partitions:
        files = snapshot.listing.files(partition)
        if partition in left and snapshot.listing.source != StorageListing.source:
            files = _with_stored(snapshot, files, partition, groups_gone(partition, rules))
        found = plan_partition(partition, files, rules)
        if found.names:
            paths = (f"{root}/{join(partition, name)}" for name in found.names)
            all_found.files[partition] = tuple(CleanFileInfo(path) for path in paths)
        if found.is_replaced and partition and holds_nothing_but(snapshot.storage, partition, found.names):
            all_found.emptied.append(partition)
        if found.is_held:
            all_found.held.append(partition)
    return all_found


def _with_stored(
    snapshot: Snapshot, files: list[ListedFile], partition: str, groups: frozenset[str]
) -> list[ListedFile]:
    """`files`, and what the storage holds of these file groups beside them. One list request."""
    stored = (file for file in StorageListing(snapshot.storage).files(partition) if group_named(file.name) in groups)
    return sorted({file.name: file for file in (*stored, *files)}.values(), key=lambda file: file.name)


def still_needed(snapshot: Snapshot, plan: CleanerPlan) -> dict[str, set[str]]:
    """Partition -> names in a plan that are protected, or that a reader of the newest table state needs."""
    savepoints = read_savepoints(snapshot.storage, snapshot.timeline)
    rules = _rules(snapshot, CleanSettings(policy=CleanPolicy.VERSIONS), None)
    rules = replace(rules, protected=read_protected(snapshot.storage, snapshot.timeline, savepoints))

    needed: dict[str, set[str]] = {}
    for partition, names in planned_names(plan).items():
        found = needed_by_newest(partition, snapshot.listing.files(partition), rules) & set(names)
        if found:
            needed[partition] = found
    return needed


def _rules(snapshot: Snapshot, settings: CleanSettings, earliest: str | None) -> CleanRules:
    return CleanRules(
        policy=settings.policy,
        versions_retained=settings.versions_retained,
        earliest=earliest,
        timeline=snapshot.timeline,
        slicing=log_slicing(snapshot.config),
        replaced=snapshot.replaced,
    )
