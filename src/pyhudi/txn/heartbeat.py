"""Signs of life: a file for each running write, renewed while it runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.errors import NotFound, Unavailable
from pyhudi.format.names import HEARTBEATS, heartbeat_path
from pyhudi.storage.protocol import Storage

OURS = b"pyhudi"
"""The content of our heartbeats, which Apache Hudi (it writes and needs none) does not look at: it tells a
pending write of ours, which is dead once its guard is free, from another writer's."""


def is_alive_elsewhere(storage: Storage, requested: str, *, now_ms: int, expires_ms: int) -> bool:
    """Whether another kind of writer renewed this instant's heartbeat within `expires_ms`.

    Spec: format/actions.md section 3.
    """
    path = heartbeat_path(requested)
    info = storage.head(path)
    if info is None or now_ms - info.modified_ms > expires_ms:
        return False
    try:
        return storage.get(path) != OURS
    except NotFound:
        return False


def put_heartbeat(storage: Storage, requested: str) -> None:
    """Show that an action is ours, before it is on the timeline: one without a heartbeat is another writer's."""
    storage.put(heartbeat_path(requested), OURS)


@contextmanager
def beating(storage: Storage, requested: str, *, interval_ms: int) -> Iterator[None]:
    """Renew an instant's heartbeat until the block ends. Removing the file is the caller's, once it has committed."""
    path = heartbeat_path(requested)
    storage.put(path, OURS)
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(interval_ms / 1000):
            try:
                storage.put(path, OURS)
            except Unavailable:
                continue  # the next beat may get through; two in a row may fail before anybody gives us up

    thread = threading.Thread(target=renew, name=f"pyhudi-heartbeat-{requested}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def has_own_heartbeat(storage: Storage, requested: str) -> bool:
    """Whether a pending action was begun by pyhudi: whoever holds the guard knows that it is dead. One get."""
    try:
        return storage.get(heartbeat_path(requested)) == OURS
    except NotFound:
        return False


def find_own_heartbeats(storage: Storage) -> list[str]:
    """The requested times whose heartbeats are of pyhudi, dead or alive. One list request, and a get each."""
    own = []
    for file in storage.list(HEARTBEATS):
        try:
            if storage.get(file.path) == OURS:
                own.append(file.path.rpartition("/")[2])
        except NotFound:
            continue
    return own


def remove_heartbeat(storage: Storage, requested: str) -> None:
    """Delete an instant's heartbeat, where there is one."""
    storage.delete(f"{HEARTBEATS}/{requested}")
