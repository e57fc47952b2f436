"""Signs of life: a file for each running write, renewed while it runs."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from pyhudi.errors import NotFound, Unavailable
from pyhudi.format.names import HEARTBEATS, heartbeat_path
from pyhudi.storage.processes import process_mark
from pyhudi.storage.protocol import Storage
from pyhudi.txn.locks.repeated import repeated

OURS = b"pyhudi"
"""How the content of pyhudi's heartbeats begins. Apache Hudi writes heartbeats without content and ignores this one.

The content tells pyhudi's pending writes from those of other writers.
"""


def is_own(content: bytes) -> bool:
    """Whether a heartbeat file is one of pyhudi's."""
    return content.split(b" ")[0] == OURS


def process_of(content: bytes) -> str:
    """The mark of the process that put one of pyhudi's heartbeats; empty where it left none."""
    return content.partition(b" ")[2].decode("ascii", "replace")


def _content() -> bytes:
    """What this process puts into its heartbeats."""
    return b" ".join((OURS, process_mark().encode("ascii"))).rstrip()


def put_heartbeat(storage: Storage, requested: str) -> None:
    """Mark an action as pyhudi's before it is on the timeline. An action without our heartbeat is another writer's."""
    storage.put(heartbeat_path(requested), _content())


@contextmanager
def beating(storage: Storage, requested: str, *, interval_ms: int) -> Iterator[None]:
    """Renew an instant's heartbeat until the block ends. The caller removes the file once it has committed.

    A heartbeat that is gone is not renewed: another writer has taken this one for dead, and rolls its action back.
    """
    path = heartbeat_path(requested)
    storage.put(path, _content())

    def beat() -> None:
        with suppress(Unavailable):  # the next beat may get through: others wait for several missed beats
            if storage.head(path) is not None:
                storage.put(path, _content())

    with repeated(beat, every_ms=interval_ms, name=f"pyhudi-heartbeat-{requested}"):
        yield


def has_own_heartbeat(storage: Storage, requested: str) -> bool:
    """Whether pyhudi began a pending action. One get."""
    try:
        return is_own(storage.get(heartbeat_path(requested)))
    except NotFound:
        return False


def find_own_heartbeats(storage: Storage, *, other_than: Collection[str]) -> list[str]:
    """The requested times with a heartbeat of pyhudi, dead or alive, except some.

    One list request, and one get per heartbeat.
    """
    own = []
    for file in storage.list(HEARTBEATS):
        requested = file.path.rpartition("/")[2]
        if requested in other_than:
            continue
        try:
            if is_own(storage.get(file.path)):
                own.append(requested)
        except NotFound:
            continue
    return own


def runner(storage: Storage, requested: str) -> str:
    """Who runs an action, for a message: as far as its heartbeat can say. One get."""
    try:
        mark = process_of(storage.get(heartbeat_path(requested)))
    except NotFound:
        return "another writer"
    if not mark:
        return "another writer"
    return "another thread of this process" if mark == process_mark() else "another process"


def remove_heartbeat(storage: Storage, requested: str) -> None:
    """Delete an instant's heartbeat, where there is one."""
    storage.delete(f"{HEARTBEATS}/{requested}")
