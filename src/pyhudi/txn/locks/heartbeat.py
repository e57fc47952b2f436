"""Signs of life: a file for each running write, renewed while it runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.errors import NotFound, Unavailable
from pyhudi.format.names import HEARTBEATS, heartbeat_path
from pyhudi.storage.protocol import Storage

OURS = b"pyhudi"
"""The content of pyhudi's heartbeat files. Apache Hudi writes heartbeats without content and ignores this one.

The content tells pyhudi's pending writes from those of other writers. A pending write of pyhudi is dead once the
guard is free; one of another writer may still run.
"""


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
    """Mark an action as pyhudi's before it is on the timeline. An action without our heartbeat is another writer's."""
    storage.put(heartbeat_path(requested), OURS)


@contextmanager
def beating(storage: Storage, requested: str, *, interval_ms: int) -> Iterator[None]:
    """Renew an instant's heartbeat until the block ends. The caller removes the file once it has committed."""
    path = heartbeat_path(requested)
    storage.put(path, OURS)
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(interval_ms / 1000):
            try:
                storage.put(path, OURS)
            except Unavailable:
                continue  # the next beat may get through: others wait for several missed beats

    thread = threading.Thread(target=renew, name=f"pyhudi-heartbeat-{requested}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def has_own_heartbeat(storage: Storage, requested: str) -> bool:
    """Whether pyhudi began a pending action. Who holds the guard then knows that the action is dead. One get."""
    try:
        return storage.get(heartbeat_path(requested)) == OURS
    except NotFound:
        return False


def find_own_heartbeats(storage: Storage) -> list[str]:
    """The requested times with a heartbeat of pyhudi, dead or alive. One list request, and one get per heartbeat."""
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
