"""The locks of actions that run without the guard, where the guard knows which processes live."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress

from pyhudi.errors import Conflict, NotFound
from pyhudi.format.names import heartbeat_path
from pyhudi.storage.processes import has_ended
from pyhudi.storage.protocol import Storage
from pyhudi.txn.locks.guard import Guard, Lives
from pyhudi.txn.locks.heartbeat import process_of


@contextmanager
def running(guard: Guard, requested: str) -> Iterator[None]:
    """Run the action of an instant while the context lasts, so that others know at once when this process dies.

    Another process may still hold the lock of a service: one that stood still until its heartbeat ran out, so that the
    service is now done anew. In this case the heartbeat alone says that the service runs.
    """
    with ExitStack() as life:
        if isinstance(guard, Lives):
            with suppress(Conflict):
                life.enter_context(guard.running(requested))
        yield


def is_surely_dead(guard: Guard, storage: Storage, requested: str) -> bool:
    """Whether the process that began the action of an instant has certainly ended.

    The guard says so where it knows processes; elsewhere the mark of the process in the heartbeat, by one get. False
    does not mean that the process lives: then only the age of the heartbeat can say.
    """
    if isinstance(guard, Lives):
        return guard.has_died(requested)
    try:
        return bool(has_ended(process_of(storage.get(heartbeat_path(requested)))))
    except NotFound:
        return False


def forget_dead(guard: Guard, pending: Collection[str]) -> None:
    """Remove the files in `RUNNING` that dead processes left, but those of pending actions. The caller holds the guard.

    Such a file is left by a process that died before its action was on the timeline, or right after its end.
    """
    if isinstance(guard, Lives):
        for requested in guard.known():
            if requested not in pending:
                forget_running(guard, requested)


def forget_running(guard: Guard, requested: str) -> None:
    """Remove the file in `RUNNING` of an action that was taken off the timeline. A running one keeps its file."""
    if isinstance(guard, Lives) and guard.has_died(requested):
        with running(guard, requested):
            pass
