"""Whether whoever began an action may still be at it.

Writers hold the table's guard only to begin and to complete an action, so a free guard says nothing of the actions
that are pending. An action of pyhudi is dead at once when the operating system says that its process has ended: by a
lock that ends with the process, or by the mark of the process in the heartbeat. Where it cannot say that, as for a
process of another machine, the action is dead when its heartbeat has not been renewed for `expires_ms`.
"""

from dataclasses import dataclass

from pyhudi.errors import NotFound
from pyhudi.format.names import heartbeat_path
from pyhudi.storage.processes import has_ended
from pyhudi.storage.protocol import Storage
from pyhudi.txn.locks.guard import Guard, Lives
from pyhudi.txn.locks.heartbeat import is_own, process_of


@dataclass(frozen=True, slots=True)
class Beat:
    """The newest sign of life of an action. `age_ms`: since its last beat; None if only its process is known to live.

    `is_ours`: pyhudi began the action.
    """

    age_ms: int | None
    is_ours: bool


@dataclass(frozen=True, slots=True)
class LifeTerms:
    """When an action counts as dead: `expires_ms` after its last beat. `now_ms`: the time now. `guard`: the table's.

    `shares_lock`: other tools' writers begin and complete their actions under a lock that this writer holds, too.
    """

    guard: Guard
    now_ms: int
    expires_ms: int
    shares_lock: bool = False

    def living(self, storage: Storage, requested: str) -> Beat | None:
        """The sign of life of an action that may be running; None for an action that nobody runs.

        Requests: none where the guard knows that the process lives; else at most a get and a head.
        """
        runs = self.guard.is_running(requested) if isinstance(self.guard, Lives) else None
        if runs:
            return Beat(None, is_ours=True)

        path = heartbeat_path(requested)
        try:
            content = storage.get(path)
        except NotFound:
            return None
        is_ours = is_own(content)
        if is_ours and (runs is False or has_ended(process_of(content))):
            return None

        info = storage.head(path)
        if info is None or self.now_ms - info.modified_ms > self.expires_ms:
            return None
        return Beat(self.now_ms - info.modified_ms, is_ours)
