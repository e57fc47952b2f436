"""A writer plans a rollback and stands still, while another writer rolls the same write back. Its plan could stay
pending for good, as nobody has anything to carry out.
"""

import pytest

from pyhudi.format.timeline.action_files import encode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import InstantInfo, RollbackPlan
from pyhudi.storage.memory import MemoryStorage
from pyhudi.txn.locks.heartbeat import put_heartbeat
from tests.support.model import Handles, Row, arrow, problems_on
from tests.support.versions import EVERY_VERSION

GONE, ROLLBACK = "20200101000000001", "20200101000000002"


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_our_rollback_of_a_write_that_is_gone_is_dropped(version: int) -> None:
    storage, path = with_rollback(version)
    put_heartbeat(storage, ROLLBACK)
    Handles(storage).open().upsert(arrow([Row("b", "oslo", 1, 2)]))
    assert storage.head(path) is None
    assert problems_on(storage) == []


def test_the_rollback_of_another_tool_stays() -> None:
    """Apache Hudi deletes the instant before it completes the rollback, and finishes the rollback itself."""
    storage, path = with_rollback(8)
    Handles(storage).open().upsert(arrow([Row("b", "oslo", 1, 2)]))
    assert storage.head(path) is not None


def with_rollback(version: int) -> tuple[MemoryStorage, str]:
    """A table with a pending rollback of a write that is gone, and the path of its plan."""
    storage = MemoryStorage()
    table = Handles(storage).create(table_version=version)
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    layout = table._access.snapshot().timeline.layout
    path = layout.path(Instant(ROLLBACK, "rollback", "REQUESTED"))
    storage.put(path, encode_rollback_plan(RollbackPlan(InstantInfo(GONE, "commit"))))
    return storage, path
