"""The calls of a table that keep a commit, go back to one, and take one back."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from pyhudi.api.services import TableServices
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.undo.restore import RestoreResult, restore_table
from pyhudi.services.undo.rollback import RollbackResult, roll_back_write
from pyhudi.services.undo.savepoint import Savepoint, delete_savepoint, put_savepoint, read_savepoint_list
from pyhudi.txn.action.session import WriteSession


class TableSavepoints(TableServices):
    """Savepoints of `HudiTable`, which says how the table is reached."""

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comment: str = "",
        options: Mapping[str, object] | None = None,
    ) -> Savepoint:
        """Keep a commit: its files are not cleaned, and it is not archived, until the savepoint is deleted.

        `instant`: its requested time; None: the newest commit. `user`, `comment`: stored with it.
        Raises: NotFound for a commit that is not on the active timeline, or whose files were cleaned away; Invalid for
        one that has a savepoint, and for a table without any; Conflict while another writer holds the table.
        """
        with self._turn("savepoint", options) as session:
            return put_savepoint(session, instant, user=user, comment=comment)

    def savepoints(self) -> tuple[Savepoint, ...]:
        """The table's savepoints, by requested time. One get each."""
        return read_savepoint_list(self._access.snapshot())

    def delete_savepoint(self, instant: str, *, options: Mapping[str, object] | None = None) -> Savepoint:
        """Delete a savepoint; returns what it was. Files that nothing else needs go with the next clean.

        Raises: NotFound where there is none; Conflict while another writer holds the table.
        """
        with self._turn("delete savepoint", options) as session:
            return delete_savepoint(session, instant)

    def restore(self, instant: str, *, options: Mapping[str, object] | None = None) -> RestoreResult:
        """Take the table back to a commit, for good: every write since then is rolled back, its files are deleted.

        `instant`: the requested time of a commit with a savepoint, or of any other whose files are all there. The
        metadata table goes back with it, or is made anew. From the moment the restore is requested readers see the
        table as it will be; one that dies is brought to its end by the next write or restore. Readers that began
        before may miss files. Nothing is done where nothing came after the commit.
        Raises: NotFound for a commit that is not on the active timeline, or whose files were cleaned away; Invalid
        where savepoints or archived writes came after it; Conflict while another writer, compaction or indexing runs.
        """
        with self._turn("restore", options, takes_over=instant) as session:
            return restore_table(session, instant)

    def rollback(self, instant: str, *, options: Mapping[str, object] | None = None) -> RollbackResult:
        """Take back the newest write, for good: its files are deleted, the table is as before it.

        `instant`: its requested time, or that of a write that died, which the next write would roll back anyway. The
        metadata table goes back with it. From its first step on readers see the table without the write; a rollback
        that dies is brought to its end by the next write. Readers that began before may miss files.
        Raises: NotFound for a write that is not on the active timeline, or where files that the commit before it needs
        were cleaned away; Invalid for one that is not the newest (`restore` takes several back), has a savepoint, or
        changed no row; Conflict while another writer, compaction or indexing runs.
        """
        with self._turn("rollback", options, takes_back=instant) as session:
            return roll_back_write(session, instant)

    def _turn(
        self,
        what: str,
        options: Mapping[str, object] | None,
        *,
        takes_over: str | None = None,
        takes_back: str | None = None,
    ) -> AbstractContextManager[WriteSession]:
        _, merged, settings = self._prepare(options)
        clean = CleanSettings.from_options(merged)
        return self._session(
            self._access, settings, clean, what, is_write=False, takes_over=takes_over, takes_back=takes_back
        )
