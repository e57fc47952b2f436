"""A service that fails could end the process, be tried without pause, or keep the others from their work."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from pyhudi.errors import Conflict, Invalid
from pyhudi.services.rounds.due import Due, Service
from pyhudi.services.rounds.loop import RETRY_MAX_MS, Rounds, Served, ServiceStatus, State
from tests.support.model import StepClock

CLEAN, ARCHIVE = Service.CLEAN, Service.ARCHIVE
INTERVAL_MS = 10_000


@dataclass
class FakeTable:
    """A table on which what is named is due, and carrying it out does what is handed in."""

    does: dict[Service, Callable[[], Served]]
    uri: str = "memory:t"
    looked: list[tuple[Service, ...]] = field(default_factory=list)
    done: list[Service] = field(default_factory=list)

    def due(self, services: Collection[Service]) -> Sequence[Due]:
        self.looked.append(tuple(services))
        return [Due(one, one in self.does, "it is due" if one in self.does else "nothing is due") for one in services]

    def carry_out(self, service: Service) -> Served:
        self.done.append(service)
        return self.does[service]()


class Watched:
    """Rounds over tables, and what was told of them."""

    def __init__(self, *tables: FakeTable, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self.clock, self.told = StepClock(), list[tuple[str, ServiceStatus]]()
        self.rounds = Rounds(
            tables, (ARCHIVE, CLEAN), self.clock, interval_ms=INTERVAL_MS, is_stopped=is_stopped,
            tell=lambda uri, status: self.told.append((uri, status)),
        )  # fmt: skip

    def status(self, service: Service, uri: str = "memory:t") -> ServiceStatus:
        return self.rounds.status[uri, service]


def fails(error: Exception) -> Callable[[], Served]:
    def carry_out() -> Served:
        raise error

    return carry_out


def served() -> Served:
    return Served("20260101000000000", "")


def test_what_is_due_is_done_in_order_and_the_rest_looked_at_anew() -> None:
    table = FakeTable({ARCHIVE: served, CLEAN: served})
    watched = Watched(table)

    watched.rounds.round()

    assert table.done == [CLEAN, ARCHIVE]
    assert table.looked == [(CLEAN, ARCHIVE), (ARCHIVE,)]
    assert [(one.service, one.state) for _, one in watched.told] == [
        (CLEAN, State.RUNNING), (CLEAN, State.DONE), (ARCHIVE, State.RUNNING), (ARCHIVE, State.DONE),
    ]  # fmt: skip
    assert watched.status(CLEAN).requested == "20260101000000000"
    assert watched.status(CLEAN).runs == 1


def test_nothing_due_is_told_with_the_reason() -> None:
    watched = Watched(FakeTable({}))
    watched.rounds.round()
    assert watched.status(CLEAN).state is State.IDLE
    assert watched.status(CLEAN).reason == "nothing is due"


def test_a_failure_waits_twice_as_long_each_time_and_stops_no_other() -> None:
    table = FakeTable({CLEAN: fails(RuntimeError("disk")), ARCHIVE: served})
    watched = Watched(table)
    waits = []
    for _ in range(12):
        watched.rounds.round()
        status = watched.status(CLEAN)
        waits.append(status.retry_ms - status.since_ms)
        assert status.reason == "RuntimeError: disk"
        before = len(table.done)
        watched.rounds.round()
        assert CLEAN not in table.done[before:], "it was tried again at once"
        watched.clock.ms = status.retry_ms

    assert waits[:4] == [INTERVAL_MS, 2 * INTERVAL_MS, 4 * INTERVAL_MS, 8 * INTERVAL_MS]
    assert waits[-1] == RETRY_MAX_MS
    assert watched.status(CLEAN).failures == 12
    assert watched.status(ARCHIVE).runs == 24

    table.does[CLEAN] = served
    watched.rounds.round()
    assert (watched.status(CLEAN).failures, watched.status(CLEAN).state) == (0, State.DONE)


def test_another_process_in_the_way_is_no_failure() -> None:
    table = FakeTable({CLEAN: fails(Conflict("another process runs it"))})
    watched = Watched(table)
    for _ in range(2):
        watched.rounds.round()
        assert watched.status(CLEAN).state is State.BUSY
    assert table.done == [CLEAN, CLEAN]
    assert watched.status(CLEAN).failures == 0


def test_a_table_that_cannot_be_read_stops_no_other() -> None:
    class Broken(FakeTable):
        def due(self, services: Collection[Service]) -> Sequence[Due]:
            raise Invalid("the properties are torn")

    broken, whole = Broken({}, uri="memory:a"), FakeTable({CLEAN: served}, uri="memory:b")
    watched = Watched(broken, whole)
    watched.rounds.round()
    assert watched.status(CLEAN, "memory:a").state is State.FAILED
    assert watched.status(CLEAN, "memory:a").reason == "the properties are torn"
    assert watched.status(CLEAN, "memory:b").state is State.DONE


def test_it_stops_after_the_service_that_runs() -> None:
    table = FakeTable({CLEAN: served, ARCHIVE: served})
    watched = Watched(table, is_stopped=lambda: bool(table.done))
    watched.rounds.round()
    assert table.done == [CLEAN]


def test_a_service_that_finds_nothing_after_all_is_idle() -> None:
    watched = Watched(FakeTable({CLEAN: lambda: Served(None, "another writer was faster")}))
    watched.rounds.round()
    assert (watched.status(CLEAN).state, watched.status(CLEAN).runs) == (State.IDLE, 0)
    assert watched.status(CLEAN).reason == "another writer was faster"


def test_a_service_is_judged_when_those_before_it_have_had_their_turn() -> None:
    """To judge one may take a get for each log, in vain where a service before it changes the table."""
    judged = list[Service]()

    class Lazy(FakeTable):
        def due(self, services: Collection[Service]) -> Iterator[Due]:  # type: ignore[override]
            for one in services:
                judged.append(one)
                yield Due(one, one is CLEAN and not self.done, "")

    Watched(Lazy({CLEAN: served})).rounds.round()

    assert judged == [CLEAN, ARCHIVE]


def test_a_service_that_cannot_be_judged_keeps_no_other_from_its_work() -> None:
    class Odd(FakeTable):
        def due(self, services: Collection[Service]) -> Iterator[Due]:  # type: ignore[override]
            return map(self.judge, services)

        def judge(self, service: Service) -> Due:
            return Due(service, 1 // (service is ARCHIVE) == 1, "it is due")

    table = Odd({ARCHIVE: served})
    watched = Watched(table)
    watched.rounds.round()

    assert watched.status(CLEAN).state is State.FAILED
    assert table.done == [ARCHIVE]
