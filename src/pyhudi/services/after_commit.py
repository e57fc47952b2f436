"""The services that follow a commit.

Cleaning and archiving run while the writer still holds the table. Compaction runs after the writer has let go of it.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from pyhudi.by_content import ByContent
from pyhudi.options.values import OptionValues
from pyhudi.services.archive.run import archive_when_due
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.services.clean.run import is_possibly_due, run_clean
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.compaction.inputs import CompactionKind
from pyhudi.services.compaction.run import CompactionJob, may_be_due, run_compactions, schedule_compaction
from pyhudi.services.compaction.settings import CompactionSettings
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
        )
        return asked if OptionValues(options).flag(SERVICES_ENABLED, True) else asked.without_services()

    def without_services(self) -> Self:
        """The same settings, with no service that follows a commit. Each service can still be called."""
        return replace(
            self,
            clean=replace(self.clean, is_automatic=False),
            archive=replace(self.archive, is_automatic=False),
            compaction=replace(self.compaction, is_inline=False, is_scheduled_inline=False, logs_inline=False),
        )


_known: ByContent[tuple[tuple[str, str], ...], AfterCommitSettings] = ByContent(
    2 << 20, lambda texts, _: 300 * len(texts)
)
"""Settings of options that were seen before."""


def run_after_commit(session: WriteSession, settings: AfterCommitSettings) -> None:
    """Run the services that are due after this session's commit.

    The guard is still held: nobody writes between the commit and its clean, and the clean needs no second turn. The
    commit has landed, so a service that fails is only logged. It stays pending and is finished after a later commit.
    """
    uri = session.access.location.uri
    if settings.clean.is_automatic and is_possibly_due(session, settings.clean):
        _attempt("clean", uri, lambda: run_clean(session, settings.clean, is_asked=False))
    if settings.archive.is_automatic:
        _attempt("archival", uri, lambda: archive_when_due(session, settings.archive))


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
            run_compactions(job(base), is_asked=False)
        elif settings.is_scheduled_inline and not settings.is_inline and may_be_due(job(base), now):
            schedule_compaction(job(base), is_asked=False)
        if settings.logs_inline and may_be_due(job(logs), now):
            run_compactions(job(logs), is_asked=False)

    _attempt("compaction", uri, run)


def _attempt(what: str, uri: str, run: Callable[[], object]) -> None:
    try:
        run()
    except Exception as error:  # of any kind: the write has succeeded, and a failed service must not make it fail
        log.warning(
            "%s: the commit landed, the %s after it failed and is tried again after the next one: %s: %s",
            uri, what, type(error).__name__, error,
        )  # fmt: skip
