"""A service could complete although others had ended it, or be refused for what does it no harm.

Each case is one fact about the table now, and the verdict of the judge on it. Writes: `test_writes.py`.
"""

from dataclasses import replace

import pytest

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant import Instant
from pyhudi.txn.conflicts.changes import Change
from pyhudi.txn.conflicts.verdict import (
    Mine,
    PlanOutdated,
    Proceed,
    Refused,
    TableState,
    Verdict,
    judge_log_compaction,
    judge_service,
    refuse,
)

MINE = Instant("20260101000000005", "compaction", "INFLIGHT")
OTHER = Instant("20260101000000006", "commit", "INFLIGHT")
UPON = TableState("file:///t", 9, frozenset({"20260101000000001"}), ())
NOW = replace(UPON, pending=(MINE,))
CHANGE = Change(MINE.requested, "COMPACT", rewritten=frozenset({("x", "a")}))
SERVICE = Mine(MINE, UPON, CHANGE, written=frozenset({"x/a"}), marked=frozenset({"x/a", "x/lost"}))

ROLLED_BACK = replace(NOW, pending=())
UNHARMED = {
    "nobody": NOW,
    "one begun": replace(NOW, pending=(MINE, OTHER)),
    "one archived": replace(NOW, committed=frozenset()),
    "one committed": replace(NOW, committed=UPON.committed | {"20260101000000004"}),
    "upgraded": replace(NOW, version=10),
}
ENDED = {
    "rolled back": ROLLED_BACK,
    "another pending": replace(NOW, pending=(OTHER,)),
    "requested only": replace(NOW, pending=(replace(MINE, state="REQUESTED"),)),
}


def why(verdict: Verdict) -> str:
    return verdict.why if isinstance(verdict, Refused) else ""


@pytest.mark.parametrize("now", UNHARMED.values(), ids=UNHARMED)
def test_a_service_completes_whatever_others_did_beside_it(now: TableState) -> None:
    assert judge_service(SERVICE, now) == Proceed()


@pytest.mark.parametrize("now", ENDED.values(), ids=ENDED)
def test_a_service_that_others_ended_does_not_complete(now: TableState) -> None:
    assert "completed it, or rolled it back" in why(judge_service(SERVICE, now))


def test_a_service_whose_file_lost_its_marker_was_given_up() -> None:
    assert "another run took it for dead" in why(judge_service(replace(SERVICE, marked=frozenset()), NOW))


def test_a_log_compaction_is_refused_once_a_compaction_has_overtaken_it() -> None:
    overtaken = judge_log_compaction(SERVICE, NOW, overtaken_by="20260101000000006")

    assert "the compaction '20260101000000006' took file groups" in why(overtaken)
    assert judge_log_compaction(SERVICE, NOW, overtaken_by=None) == Proceed()
    assert "rolled it back" in why(judge_log_compaction(SERVICE, ROLLED_BACK, overtaken_by=None))


def test_a_refusal_is_a_conflict_that_says_why() -> None:
    refuse(Proceed())
    with pytest.raises(Conflict, match="run it again") as caught:
        refuse(Refused("somebody did something; run it again"))
    assert not isinstance(caught.value, PlanOutdated)
    with pytest.raises(PlanOutdated, match="run it again"):
        refuse(Refused("somebody did something; run it again", is_mendable=True))
