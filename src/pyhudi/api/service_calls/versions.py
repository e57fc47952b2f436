"""The calls that make a table one of another version."""

from collections.abc import Mapping
from typing import Final

from pyhudi.api.handle import TableHandle
from pyhudi.api.service_calls.clustering import ClusteringCalls
from pyhudi.api.service_calls.indexes import IndexCalls
from pyhudi.api.service_calls.jobs import ServiceCalls
from pyhudi.errors import Conflict, Invalid
from pyhudi.services.clean.settings import TRIGGER_COMMITS, CleanSettings
from pyhudi.services.upgrade.path import find_version, is_later
from pyhudi.services.upgrade.run import (
    VersionChange,
    VersionResult,
    change_version,
    find_log_out_of_place,
    finish,
    read_note,
    steps_in_words,
)
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion

_EVERYTHING: Final = {
    "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}

_NO_NEW_CLEAN: Final = {TRIGGER_COMMITS: str(2**31 - 1)}

_NEWEST_SLICES: Final = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
    "hoodie.archive.automatic": "false",
}


class VersionCalls(ServiceCalls, IndexCalls, ClusteringCalls):
    """The calls about its version that a table has."""

    _handle: TableHandle

    def upgrade(
        self, to: int | None = None, *, options: Mapping[str, object] | None = None, dry_run: bool = False
    ) -> VersionResult:
        """Make the table one of a later version: 6, 7, 8 or 9; None: the newest. `dry_run`: only say each step.

        Compactions, clusterings, index builds and cleans that are pending are finished first, and every log is
        compacted. No row changes. Readers and writers of other tools must be stopped. A call that died is brought to
        its end by the next one.
        Raises: Invalid for an earlier version; Unsupported for what the version cannot say; Conflict while another
        writer is at work.
        """
        return self._change(to, options, dry_run=dry_run, is_upgrade=True)

    def downgrade(
        self, to: int, *, options: Mapping[str, object] | None = None, dry_run: bool = False
    ) -> VersionResult:  # fmt: skip
        """Make the table one of an earlier version: 8, 7, 6 or 5. Otherwise as `upgrade`.

        Indexes that the version does not have go. At version 6 time travel to before the downgrade may miss rows of
        merge-on-read tables, whose logs it finds by other names. In an object store their older slices are cleaned
        away, if they have logs. Raises: as `upgrade`; Invalid for a later version; Conflict while a savepoint holds
        such a log there.
        """
        if to is None:
            raise Invalid(f"downgrade table '{self._handle.name}': expected the version to go to, found None")
        return self._change(to, options, dry_run=dry_run, is_upgrade=False)

    def _change(
        self, to: int | None, options: Mapping[str, object] | None, *, dry_run: bool, is_upgrade: bool
    ) -> VersionResult:
        what = "upgrade" if is_upgrade else "downgrade"
        target = find_version(to, what=what)
        snapshot, _, _ = self._handle.prepare(options)
        noted = read_note(snapshot.storage)
        if noted is not None and noted.after == snapshot.config.version.number and not dry_run:
            self._finish(noted, options)
            snapshot, _, _ = self._handle.prepare(options)

        before = snapshot.config.version
        if before != target and is_later(target, before) != is_upgrade:
            raise Invalid(
                f"table '{self._handle.name}': has version {before}: {what} to {target} goes the other way; call "
                f"{'downgrade' if is_upgrade else 'upgrade'}"
            )
        steps = steps_in_words(snapshot, target, self._handle.callers_options(options))
        if steps and not dry_run:
            self._handle.told(what, lambda: self._carry_out(target, options))
        return VersionResult(before.number, target.number, steps, is_dry_run=dry_run)

    def _carry_out(self, target: TableVersion, options: Mapping[str, object] | None) -> VersionChange:
        self._finish_pending(options)
        if find_log_out_of_place(self._handle.access.snapshot(), target):
            self.clean(options={**(options or {}), **_NEWEST_SLICES})
        _, merged, settings = self._handle.prepare(options)
        clean = CleanSettings.from_options(merged)
        with self._handle.session(settings, clean, f"version {target}", is_write=False, undoes_dead=True) as session:
            change = change_version(session, target)
        self._finish(change, options)
        return change

    def _finish_pending(self, options: Mapping[str, object] | None) -> None:
        """Finish what is pending, and merge every log."""
        asked = {**(options or {}), **_EVERYTHING}
        snapshot = self._handle.access.snapshot()
        pending = {instant.action for instant in snapshot.timeline.pending}
        if "clean" in pending:
            self.clean(options={**asked, **_NO_NEW_CLEAN})
        if "logcompaction" in pending:
            self.log_compact(options=asked)
        if pending & {"clustering", "replacecommit"}:
            self.run_clusterings(options=asked)
        if "indexing" in pending:
            self.run_indexes(options=asked)
        while snapshot.config.is_merge_on_read and _has_logs(self._handle.access.snapshot()):
            result = self.compact(options=asked)
            if result.completed is None:
                raise Conflict(f"table '{self._handle.name}': has logs that no compaction takes: {result.reason}")

    def _finish(self, change: VersionChange, options: Mapping[str, object] | None) -> None:
        """Make the metadata table anew, with the indexes that it had, and take the note away."""
        _, merged, settings = self._handle.prepare(options)
        clean = CleanSettings.from_options(merged)
        with self._handle.session(settings, clean, f"indexes of version {change.after}", is_write=False) as session:
            finish(session, change)


def _has_logs(snapshot: Snapshot) -> bool:
    """Whether a slice has logs, or a compaction is pending."""
    if any(instant.action == "compaction" for instant in snapshot.timeline.pending):
        return True
    partitions = snapshot.listing.partitions()
    return any(one.log_files for partition in partitions for one in snapshot.slices(partition))
