"""The services that follow a commit.

Small cleans and archiving run while the writer still holds the table. Large cleans, compaction, clustering and the
expiry of partitions run after the writer has let go of it.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from pyhudi.by_content import ByContent
from pyhudi.metrics.measuring import told
from pyhudi.options.values import OptionValues
from pyhudi.services.archive.run import ArchiveResult, archive_when_due
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.services.backlog import tell_backlog
from pyhudi.services.clean.failed_writes import roll_back_failed
from pyhudi.services.clean.run import CleanJob, CleanResult, clean_in_turn, is_possibly_due, run_cleans
from pyhudi.services.clean.settings import CleanSettings, FailedWrites
from pyhudi.services.clustering import run as clustering
from pyhudi.services.clustering.settings import ClusteringSettings
from pyhudi.services.compaction.inputs import CompactionKind
from pyhudi.services.compaction.run import CompactionJob, may_be_due, run_compactions, schedule_compaction
from pyhudi.services.compaction.settings import CompactionSettings
from pyhudi.services.expiry.settings import ExpirySettings
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.session import WriteSession

SERVICES_ENABLED = "hoodie.table.services.enabled"

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class AfterCommitSettings:
    """Settings of the services that follow a commit."""

    clean: CleanSettings
    archive: ArchiveSettings
    compaction: CompactionSettings
    clustering: ClusteringSettings = field(default_factory=ClusteringSettings)
    expiry: ExpirySettings = field(default_factory=ExpirySettings)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "AfterCommitSettings":
        """The settings that options ask for. Raises: Invalid for a bad value."""
        return _known.get(tuple(options.items()), lambda: cls._from_options(options))

    @classmethod
    def _from_options(cls, options: Mapping[str, str]) -> "AfterCommitSettings":
        asked = cls(
            CleanSettings.from_options(options),
            ArchiveSettings.from_options(options),
            CompactionSettings.from_options(options),
            ClusteringSettings.from_options(options),
            ExpirySettings.from_options(options),
        )
        return asked if OptionValues(options).flag(SERVICES_ENABLED, True) else asked.without_services()

    def without_services(self) -> Self:
        """The same settings, with no service that follows a commit. Each service can still be called."""
        return replace(
            self,
            clean=replace(self.clean, is_automatic=False),
            archive=replace(self.archive, is_automatic=False),
            compaction=replace(self.compaction, is_inline=False, is_scheduled_inline=False, logs_inline=False),
            clustering=replace(self.clustering, is_inline=False, is_scheduled_inline=False),
            expiry=replace(self.expiry, is_inline=False),
        )


_known: ByContent[tuple[tuple[str, str], ...], AfterCommitSettings] = ByContent(
    2 << 20, lambda texts, _: 300 * len(texts)
)
"""Settings of options that were seen before."""


def run_after_commit(session: WriteSession, settings: AfterCommitSettings) -> bool:
    """Run the services that are due after this session's commit. Returns whether a clean is left (`run_clean_left`).

    The guard is still held: nobody writes between the commit and its clean, and a small clean needs no second turn. The
    commit has landed, so a service that fails is only logged. It stays pending and is finished after a later commit.
    """
    uri = session.access.location.uri
    is_left = is_held = False

    def clean(*, is_asked: bool = False) -> CleanResult:
        nonlocal is_left
        found = clean_in_turn(session, settings.clean, is_asked=is_asked)
        is_left = found.left is not None
        return found.result

    def archive() -> ArchiveResult:
        nonlocal is_held
        found = archive_when_due(session, settings.archive)
        is_held = found.is_held_by_left
        return found.result

    tell_backlog(session)
    if settings.clean.is_automatic and settings.clean.failed_writes is FailedWrites.LAZY:
        _attempt("rollback of failed writes", uri, lambda: roll_back_failed(session))
    if settings.clean.is_automatic and is_possibly_due(session, settings.clean):
        _attempt("clean", uri, told(uri, "clean", clean))
    if settings.archive.is_automatic:
        _attempt("archival", uri, told(uri, "archive", archive))
    if is_held and settings.clean.is_automatic and not is_left:
        _attempt("clean", uri, told(uri, "clean", lambda: clean(is_asked=True)))
    return is_left


def run_clean_left(uri: str, job: CleanJob) -> None:
    """Carry out a clean that was too large for the writer's turn, once the writer has let go of the table.

    A failure is only logged, as in `run_after_commit`.
    """
    _attempt("clean", uri, told(uri, "clean", lambda: run_cleans(job, is_asked=False)))


def run_after_turn(
    uri: str,
    settings: CompactionSettings,
    snapshot: Callable[[], Snapshot],
    job: Callable[[CompactionKind], CompactionJob],
) -> None:
    """Run the compactions that are due, once the writer has let go of the table; pending ones first.

    A failure is only logged, as in `run_after_commit`. `snapshot`: gives the table's current state; called only if the
    settings ask for compactions.
    """
    base, logs = CompactionKind.BASE, CompactionKind.LOG
    if not (settings.is_inline or settings.is_scheduled_inline or settings.logs_inline):
        return

    def run() -> None:
        now = snapshot()
        if settings.is_inline and may_be_due(job(base), now):
            told(uri, "compaction", lambda: run_compactions(job(base), is_asked=False))()
        elif settings.is_scheduled_inline and not settings.is_inline and may_be_due(job(base), now):
            schedule_compaction(job(base), is_asked=False)
        if settings.logs_inline and may_be_due(job(logs), now):
            told(uri, "logcompaction", lambda: run_compactions(job(logs), is_asked=False))()

    _attempt("compaction", uri, run)


def end_outdated_clusterings(session: WriteSession) -> None:
    """Take pending clusterings off the timeline whose file groups a write has just changed. The guard is still held."""
    if session.snapshot.timeline.pending_services:
        _attempt("rollback of clusterings", session.access.location.uri, lambda: _end_outdated(session))


def _end_outdated(session: WriteSession) -> None:
    clustering.take_off_outdated(replace(session, snapshot=session.access.snapshot()))


def cluster_after_turn(
    uri: str,
    settings: ClusteringSettings,
    snapshot: Callable[[], Snapshot],
    job: Callable[[], clustering.ClusteringJob],
) -> None:
    """Run the clustering that is due, once the writer has let go of the table; pending ones first.

    As `run_after_turn` otherwise.
    """
    if not (settings.is_inline or settings.is_scheduled_inline):
        return

    def run() -> None:
        own = job()
        if not clustering.may_be_due(own, snapshot()):
            return
        if settings.is_inline:
            told(uri, "clustering", lambda: clustering.run_clusterings(own, is_asked=False))()
        else:
            clustering.schedule_clustering(own, is_asked=False)

    _attempt("clustering", uri, run)


def expire_after_turn(uri: str, settings: ExpirySettings, expire: Callable[[], object]) -> None:
    """Delete the partitions that have expired, once the writer has let go of the table. A failure is only logged."""
    if settings.is_inline:
        _attempt("expiry of partitions", uri, told(uri, "expiry", expire))


def _attempt(what: str, uri: str, run: Callable[[], object]) -> None:
    try:
        run()
    except Exception as error:  # of any kind: the write has succeeded, and a failed service must not make it fail
        log.warning(
            "%s: the commit landed, the %s after it failed and is tried again after the next one: %s: %s",
            uri, what, type(error).__name__, error,
        )  # fmt: skip
