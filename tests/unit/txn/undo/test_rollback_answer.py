"""A rollback whose last answer got lost could count as failed: the next writer would roll the same write back again."""

from datetime import UTC
from typing import cast

from pyhudi.errors import Unavailable
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import read_timeline
from pyhudi.timeline.layout import timeline_layout
from pyhudi.txn.action.run import ActionTable
from pyhudi.txn.undo.rollback import run_rollback

LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2"})
DEAD = Instant("20260101000000001", "commit", "INFLIGHT")


class LostAnswer:
    """Completed files land, and the store does not say so."""

    def __init__(self, inner: MemoryStorage) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def put_new(self, path: str, content: bytes) -> bool:
        is_new = self._inner.put_new(path, content)
        if path.endswith(".rollback"):
            raise Unavailable("no answer")
        return is_new


def test_a_rollback_that_landed_without_an_answer_is_done() -> None:
    memory = MemoryStorage()
    storage, times = cast(Storage, LostAnswer(memory)), iter(f"2026010100000000{number}" for number in range(2, 9))
    table = ActionTable(storage, LAYOUT, lambda: next(times), lambda: None)
    table.begin(DEAD.requested, "commit", request=b"")

    done = run_rollback(table, read_timeline(storage, LAYOUT, UTC), DEAD)

    assert (done.requested, done.completed) == ("20260101000000002", "20260101000000003")
    assert [(i.requested, i.action, i.state) for i in read_timeline(memory, LAYOUT, UTC)] == [
        (done.requested, "rollback", "COMPLETED")
    ]
