"""What follows a commit, while its writer still holds the table: cleaning, then archiving."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from pyhudi.services.archive import archive_when_due
from pyhudi.services.archive_settings import ArchiveSettings
from pyhudi.services.clean import is_possibly_due, run_clean
from pyhudi.services.clean_settings import CleanSettings
from pyhudi.txn.session import WriteSession

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class AfterCommitSettings:
    """Settings of the services that follow a commit."""

    clean: CleanSettings
    archive: ArchiveSettings

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a value that cannot be one."""
        return cls(CleanSettings.from_options(options), ArchiveSettings.from_options(options))


def run_after_commit(session: WriteSession, settings: AfterCommitSettings) -> None:
    """Run the services that are due after this session's commit.

    The guard is still held, so nobody writes between the commit and its clean and no second turn is waited for. The
    commit has landed: whatever fails here is logged, stays pending, and is finished after a later commit.
    """
    if settings.clean.is_automatic and is_possibly_due(session, settings.clean):
        _attempt("clean", session, lambda: run_clean(session, settings.clean, is_asked=False))
    if settings.archive.is_automatic:
        _attempt("archival", session, lambda: archive_when_due(session, settings.archive))


def _attempt(what: str, session: WriteSession, run: Callable[[], object]) -> None:
    try:
        run()
    except Exception as error:  # of any kind: the write has succeeded, and must not be repeated for this
        log.warning(
            "%s: the commit landed, the %s after it failed and is tried again after the next one: %s: %s",
            session.access.location.uri, what, type(error).__name__, error,
        )  # fmt: skip
