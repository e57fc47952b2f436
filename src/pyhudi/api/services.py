"""The calls of a table that run its services when asked; most of them also follow writes by themselves."""

from collections.abc import Mapping

from pyhudi.api.writes import TableWrites
from pyhudi.services.archive import ArchiveResult, run_archive
from pyhudi.services.archive_settings import ArchiveSettings
from pyhudi.services.clean import CleanResult, run_clean
from pyhudi.services.clean_settings import CleanSettings


class TableServices(TableWrites):
    """The services of `HudiTable`, which says how the table is reached."""

    def clean(self, *, options: Mapping[str, object] | None = None) -> CleanResult:
        """Delete the files that neither a retained commit nor a savepoint nor a pending action needs any more.

        What is retained is what `hoodie.clean.*` says. A clean of any writer that was left pending is finished first.
        It runs after writes by itself, unless `hoodie.clean.automatic` is false.
        Raises: Conflict while another writer holds the table.
        """
        _, merged, settings = self._prepare(options)
        clean = CleanSettings.from_options(merged)
        with self._session(self._access, settings, clean, "clean") as session:
            return run_clean(session, clean, is_asked=True)

    def archive(self, *, options: Mapping[str, object] | None = None) -> ArchiveResult:
        """Move old instants from the active timeline into the history, the metadata table's too.

        How many stay is what `hoodie.keep.*` and `hoodie.archive.*` say. It runs after writes by itself, unless
        `hoodie.archive.automatic` is false. Raises: Conflict while another writer holds the table.
        """
        _, merged, settings = self._prepare(options)
        archive = ArchiveSettings.from_options(merged)
        with self._session(self._access, settings, archive.clean, "archive") as session:
            return run_archive(session, archive)
