"""Who else takes part in a commit: called under the guard, in this order.

A participant confirms the hold by itself, before it deletes or completes anything: LockLost ends the write.
"""

from typing import Protocol

from pyhudi.model.commit import CleanMetadata, CommitMetadata, RollbackMetadata
from pyhudi.table.snapshot import Snapshot


class CommitParticipant(Protocol):
    """Something that is kept true with the table, such as its metadata table."""

    def roll_back(self, target: str, rollback: str, metadata: RollbackMetadata) -> None:
        """Undo what was taken over for the write requested at `target`; `rollback` is the rollback's requested time.
        `metadata`: what the rollback has done to the table's files.

        Called again after a crash: what is undone already stays undone.
        """

    def before_rollback(self, target: str, rollback: str) -> None:
        """The completed write requested at `target` is about to be taken back, at `rollback`: give up what `roll_back`
        could not undo any more.
        """

    def restore(self, to: str, restore: str) -> None:
        """Go back to where the write requested at `to` left off: every write since is rolled back, in the table's files
        and on its timeline. `restore`: the requested time of the restore, which completes right after.

        Called again after a crash.
        """

    def begin(self, snapshot: Snapshot) -> None:
        """Get ready for a write: no dead write is left, and the write has not been requested yet."""

    def before_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Take over what the write at `requested` did. It completes right after, or is rolled back later."""

    def before_clean(self, requested: str, metadata: CleanMetadata) -> None:
        """Take over that the clean at `requested` deleted files. It completes right after.

        Called again after a crash, maybe with fewer files: a clean is carried out anew, not rolled back.
        """
