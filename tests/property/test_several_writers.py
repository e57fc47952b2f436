"""Several writers, services and readers at once could lose rows or double them, leave the metadata table untrue, show a
reader half of a commit, leave behind what nobody can finish, or wait for ever.

Two to four processes run on one table, in simulated time; a seed decides who goes on at each request, who dies, who
stands still, which answers are lost and how wrong the clocks are. Afterwards some order of the operations that
succeeded must explain what the table holds and what every reader saw. `tests/support/several_writers.py` has the runs.
"""

from collections.abc import Iterable, Sequence

import pytest

from pyhudi.txn.conflicts.verdict import Proceed
from tests.support.model import Row
from tests.support.orders import Happened as Did
from tests.support.orders import find_order, inserted, rolled_back, seen, upserted, whole, written
from tests.support.several_writers import LOCAL, QUIET, REMOTE, Run, Variant
from tests.support.simulator import Faults

QUICK, CLUSTERED, LONG = 72, 48, 4_170
"""Runs of a test case: in all 2,016 in `make test`, and 125,088 in the long tests. A run takes an eighth of a second
of a core."""
BATCHES = 8
SLEEPY = Faults(is_leased=True, stall=0.01, stalls_holding=("put_if", "get", "list", "head", "open_input"))
SLEPT = (50000, 50039, 50065, 50070, 50083, 60011, 60058)
FAULTS = {"nobody dies": QUIET, "local disk": LOCAL, "object store": REMOTE}


def no_fault_in(seeds: Iterable[int], faults: Faults, *, clusters: bool = False) -> None:
    for seed in seeds:
        run = Run(seed, faults, clusters=clusters).go()
        assert run.problems == [], run.told()


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_some_order_explains_what_happened(faults: str, batch: int) -> None:
    no_fault_in(range(batch * QUICK, (batch + 1) * QUICK), FAULTS[faults])


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("batch", range(2))
def test_some_order_explains_what_happened_beside_clusterings_and_service_processes(faults: str, batch: int) -> None:
    start = 500_000 + batch * CLUSTERED
    no_fault_in(range(start, start + CLUSTERED), FAULTS[faults], clusters=True)


@pytest.mark.parametrize("seed", [574, 728, 763])
def test_seeds_with_clusterings_that_found_a_fault(seed: int) -> None:
    """Version 6: while a record index was built, a write logged its keys behind those of later writes."""
    no_fault_in([seed], QUIET, clusters=True)


@pytest.mark.long
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_some_order_explains_what_happened_beside_clusterings_for_long(faults: str, batch: int) -> None:
    start = 2_000_000 + batch * LONG // 4
    no_fault_in(range(start, start + LONG // 4), FAULTS[faults], clusters=True)


@pytest.mark.long
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_some_order_explains_what_happened_for_long(faults: str, batch: int) -> None:
    start = 1_000_000 + batch * LONG
    no_fault_in(range(start, start + LONG), FAULTS[faults])


@pytest.mark.parametrize(
    "seed, faults",
    [
        (1055, LOCAL),
        *((s, SLEEPY) for s in SLEPT),
        *((s, REMOTE) for s in (1_000_449, 1_001_508, 1_009_337, 1_011_613)),
    ],
)
def test_seeds_that_found_a_fault(seed: int, faults: Faults) -> None:
    """1055: version 6, a compaction of the metadata table dies while a write is about to log its commit.
    50039, 50065, 50070: a write stands still while it holds the lease, and logs its commit after another has rolled it
    back. 50000: it shortens a log that the rollback has seen. 50083: a rollback is planned after another writer did it.
    60011, 60058: a heartbeat comes back that another writer has removed, and files are left that no commit knows.
    50039 since then: a rollback of a write whose older slice was cleaned away.
    1000449: a restore takes a rollback of version 6 off the timeline, whose logs stay. 1001508: an index is built,
    its heartbeat stays for want of an answer, and the build was completed once more. 1009337: a delete finds none of
    its keys in a bucket, where another writer inserts one of them before the delete completes. 1011613: the metadata
    table is compacted by a clock that is ahead, while a write works that completes by one that is behind.
    """
    no_fault_in(range(seed, seed + 1), faults)


@pytest.mark.parametrize("faults", FAULTS)
def test_a_seed_gives_the_same_run_again(faults: str) -> None:
    runs = [Run(77, FAULTS[faults]).go() for _ in range(2)]
    assert runs[0].simulation.steps > 100
    assert list(runs[0].simulation.trace) == list(runs[1].simulation.trace)


SIGHTS = ("STANDS STILL", "LOST")
"""What a trace says of a process that stands still, and of an answer that is lost."""


def was_seen(runs: Sequence[Run], sight: str) -> bool:
    return any(sight in line for run in runs for line in run.simulation.trace)


def test_the_runs_are_about_something() -> None:
    """Writers meet, conflict, die and stand still, and most operations succeed all the same."""
    runs: list[Run] = []
    for seed in range(513, 573):
        runs.append(Run(seed, REMOTE).go())
        died = any(run.simulation.crashes for run in runs)
        if len(runs) >= 12 and died and all(was_seen(runs, sight) for sight in SIGHTS):
            break
    assert died
    assert [sight for sight in SIGHTS if not was_seen(runs, sight)] == []
    outcomes = sum((run.outcomes for run in runs), start=type(runs[0].outcomes)())
    done = sum(count for name, count in outcomes.items() if name.endswith(": done"))
    assert done > outcomes.total() * 0.7
    assert sum(run.simulation.switches for run in runs) > 100


def test_an_order_is_found_only_where_there_is_one() -> None:
    row, later = Row("k", "oslo", 1, 1), Row("k", "oslo", 1, 2)
    at = ("oslo", "k")

    def did(begin: int, end: int, step: object, *, is_sure: bool = True) -> Did:
        return Did(f"{begin}", begin, end, step, is_sure)  # type: ignore[arg-type]

    first = did(1, 2, written("a", upserted([row])))
    second = did(3, 4, written("b", upserted([later])))
    beside = did(1, 4, written("b", upserted([later])))
    reads_first, reads_second = (did(5, 6, seen({at: (value,)}, whole)) for value in (1, 2))

    assert find_order({}, [first, second, reads_second]) == ("1", "3", "5")
    assert find_order({}, [first, second, reads_first]) is None
    assert find_order({}, [first, beside, reads_first]) is not None
    assert find_order({}, [first, did(3, 4, written("b", upserted([later])), is_sure=False), reads_first]) is not None
    assert find_order({}, [first, did(3, 4, rolled_back("a")), did(5, 6, seen({}, whole))]) is not None
    assert find_order({}, [first, did(3, 4, rolled_back("x")), did(5, 6, seen({}, whole))]) is None
    assert find_order({}, [first, did(3, 4, written("b", inserted([later]))), did(5, 6, seen({at: (1, 2)}, whole))])
    assert find_order({}, [did(1, 2, written(None, upserted([row])))]) is None


def test_a_lost_update_is_found() -> None:
    """The machinery itself: where no conflict is heeded, no order explains some run."""
    table = Variant("COPY_ON_WRITE", 8, "SIMPLE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyhudi.write.operation.judge_write", lambda mine, now, rules: Proceed())
        problems = (problem for seed in range(60) for problem in Run(seed, QUIET, variant=table).go().problems)
        assert any("no order explains" in problem for problem in problems)
