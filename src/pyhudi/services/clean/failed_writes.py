"""Rolling back the writes that died, where that is left to cleans."""

from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.undo.clear_up import roll_back_dead
from pyhudi.txn.undo.leftovers import sweep_leftovers
from pyhudi.txn.undo.rollback import RolledBack


def roll_back_failed(session: WriteSession) -> tuple[RolledBack, ...]:
    """Roll dead writes back in a turn that did not do so when it began. The caller holds the guard.

    No request where nothing was pending when the turn began. Raises: Conflict for a living write of another tool.
    """
    access = session.access
    if not session.snapshot.timeline.pending:
        return ()

    life = session.life()
    undone = roll_back_dead(session.table, access.snapshot().timeline, life)
    partitions = {partition for done in undone for partition in done.partitions}
    if partitions:
        sweep_leftovers(
            access.storage, session.snapshot.config, partitions, now_ms=life.now_ms,
            heartbeat_expires_ms=life.expires_ms,
        )  # fmt: skip
    return undone
