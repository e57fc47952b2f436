"""The protocol of whatever takes part in a commit beside the data table, such as the metadata table.

The methods are called under the guard. A participant confirms the hold itself before it deletes or completes
anything; LockLost then ends the write.
"""

from typing import Protocol

from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata, RollbackMetadata
from pyhudi.table.view.snapshot import Snapshot


class CommitParticipant(Protocol):
    """Something that must stay true to the table, such as its metadata table."""

    def roll_back(self, target: str, rollback: str, metadata: RollbackMetadata) -> None:
        """Undo what the participant took over from the write requested at `target`.

        `rollback`: the rollback's requested time. `metadata`: what the rollback has done to the table's files.
        After a crash this is called again; what is undone already stays undone.
        """

    def before_rollback(self, target: str, rollback: str) -> None:
        """Give up what `roll_back` could no longer undo.

        Called before the rollback requested at `rollback` takes back the completed write requested at `target`.
        """

    def restore(self, to: str, restore: str) -> None:
        """Go back to the state after the write requested at `to`.

        Every later write has been rolled back, in the table's files and on its timeline. `restore`: the requested time
        of the restore, which completes right after this call. After a crash this is called again.
        """

    def begin(self, snapshot: Snapshot) -> bool:
        """Get ready for a write. Dead writes have been cleared up, and the new write has not been requested yet.

        Returns whether anything was changed that a snapshot shows.
        """

    def before_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Take over what the write at `requested` did. The write completes right after, or is rolled back later."""

    def after_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Take over what the write at `requested` did, where that need not be exact before others see the write.

        The write has landed: nothing that fails here may end it. After a crash this is not called again.
        """

    def before_clean(self, requested: str, metadata: CleanMetadata) -> None:
        """Take over that the clean at `requested` deleted files. The clean completes right after.

        After a crash this is called again, maybe with fewer files: a clean is carried out anew, not rolled back.
        """
