"""An action could complete upon a table that is not the one it was planned on, or be refused for what does it no harm.

Each case is one fact about the table now, and the verdict of both judges on it.
"""

from dataclasses import replace

import pytest

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant import Instant
from pyhudi.txn.conflicts.verdict import (
    Mine,
    Proceed,
    Refused,
    TableState,
    Verdict,
    judge_log_compaction,
    judge_service,
    judge_write,
    refuse,
)

MINE = Instant("20260101000000005", "commit", "INFLIGHT")
OTHER = Instant("20260101000000006", "commit", "INFLIGHT")
UPON = TableState("file:///t", 9, frozenset({"20260101000000001"}), ())
NOW = replace(UPON, pending=(MINE,))
WRITE = Mine(MINE, UPON, written=frozenset({"x/a"}), marked=frozenset({"x/a", "x/lost"}))

COMMITTED = replace(NOW, committed=UPON.committed | {"20260101000000004"})
UPGRADED = replace(NOW, version=10)
ROLLED_BACK = replace(NOW, pending=())
ONLY_REQUESTED = replace(NOW, pending=(replace(MINE, state="REQUESTED"),))


def why(verdict: Verdict) -> str:
    return verdict.why if isinstance(verdict, Refused) else ""


@pytest.mark.parametrize(
    "now, of_a_write, of_a_service",
    [
        (NOW, "", ""),
        (replace(NOW, pending=(MINE, OTHER)), "", ""),
        (replace(NOW, committed=frozenset()), "", ""),
        (COMMITTED, "another writer committed '20260101000000004'", ""),
        (UPGRADED, "table version 9 when this write began, now 10", ""),
        (ROLLED_BACK, "took this write ('20260101000000005') for dead", "completed it, or rolled it back"),
        (replace(NOW, pending=(OTHER,)), "for dead", "rolled it back"),
        (ONLY_REQUESTED, "", "completed it, or rolled it back"),
    ],
    ids=["nobody", "one begun", "one archived", "committed", "upgraded", "rolled back", "another pending", "requested"],
)
def test_what_others_did_meanwhile(now: TableState, of_a_write: str, of_a_service: str) -> None:
    for judge, expected in ((judge_write, of_a_write), (judge_service, of_a_service)):
        found = judge(WRITE, now)

        assert bool(why(found)) == bool(expected), judge.__name__
        assert expected in why(found)


def test_a_service_whose_file_lost_its_marker_was_given_up() -> None:
    given_up = replace(WRITE, marked=frozenset({"x/lost"}))

    assert "another process took it for dead" in why(judge_service(given_up, NOW))
    assert judge_write(given_up, NOW) == Proceed()


def test_a_log_compaction_is_refused_once_a_compaction_has_overtaken_it() -> None:
    overtaken = judge_log_compaction(WRITE, NOW, overtaken_by="20260101000000006")

    assert "the compaction '20260101000000006' took file groups" in why(overtaken)
    assert judge_log_compaction(WRITE, NOW, overtaken_by=None) == Proceed()
    assert "rolled it back" in why(judge_log_compaction(WRITE, ROLLED_BACK, overtaken_by=None))


def test_a_refusal_is_a_conflict_that_says_why() -> None:
    refuse(Proceed())
    with pytest.raises(Conflict, match="run it again"):
        refuse(Refused("somebody did something; run it again"))
