"""Operations of several writers and readers, and whether some order of them explains what all of them saw.

The table is a dict. An operation that returned before another began comes before it; one that failed did nothing; one
whose outcome nobody knows may have happened, then or later.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from tests.support.model import Key, Row

State: TypeAlias = Mapping[Key, tuple[int, ...]]
"""The values of the rows of each key: more than one where an insert doubled a key."""

ANY = "?"
"""The requested time of an action that nobody was told."""
NODES_MAX = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A write in an order, and the table after it."""

    requested: str
    state: State


History: TypeAlias = tuple[Entry, ...]
"""The writes that stand, the first of them the table's state at the beginning."""

Step: TypeAlias = Callable[[History], History | None]
"""What an operation makes of the history; None when it cannot come here, as it saw something else."""


@dataclass(frozen=True, slots=True)
class Happened:
    """An operation: when it began and returned, counted in events, and what it does. `is_sure`: it has happened."""

    name: str
    begin: int
    end: int
    step: Step
    is_sure: bool = True


def written(requested: str | None, change: Callable[[dict[Key, tuple[int, ...]]], None]) -> Step:
    """A write. `requested`: None where it found nothing to do."""

    def step(history: History) -> History | None:
        state = dict(history[-1].state)
        change(state)
        if requested is None:
            return history if state == history[-1].state else None
        return (*history, Entry(requested, state))

    return step


def upserted(rows: Iterable[Row]) -> Callable[[dict[Key, tuple[int, ...]]], None]:
    def change(state: dict[Key, tuple[int, ...]]) -> None:
        for row in rows:
            state[row.city, row.id] = (row.v,) * max(1, len(state.get((row.city, row.id), ())))

    return change


def inserted(rows: Iterable[Row]) -> Callable[[dict[Key, tuple[int, ...]]], None]:
    def change(state: dict[Key, tuple[int, ...]]) -> None:
        for row in rows:
            state[row.city, row.id] = tuple(sorted((*state.get((row.city, row.id), ()), row.v)))

    return change


def deleted(rows: Iterable[Row]) -> Callable[[dict[Key, tuple[int, ...]]], None]:
    def change(state: dict[Key, tuple[int, ...]]) -> None:
        for row in rows:
            state.pop((row.city, row.id), None)

    return change


def replaced(rows: Sequence[Row], partitions: Iterable[str]) -> Callable[[dict[Key, tuple[int, ...]]], None]:
    """`partitions`: all of whose rows go."""
    emptied = set(partitions)

    def change(state: dict[Key, tuple[int, ...]]) -> None:
        for key in [key for key in state if key[0] in emptied]:
            del state[key]
        inserted(rows)(state)

    return change


def rolled_back(target: str) -> Step:
    """The newest write was taken back. `target`: its requested time, or `ANY`."""

    def step(history: History) -> History | None:
        if len(history) == 1 or (target != ANY and history[-1].requested not in (target, ANY)):
            return None
        return history[:-1]

    return step


def restored(history: History) -> History:
    """The table went back to its state at the beginning."""
    return history[:1]


def seen(state: State, of: Callable[[History], State]) -> Step:
    """A reader's answer. `of`: what it should see of the history."""
    return lambda history: history if of(history) == state else None


def whole(history: History) -> State:
    return history[-1].state


def first(history: History) -> State:
    return history[0].state


def since_first(history: History) -> State:
    """The rows that were written after the beginning: values tell writers apart."""
    before = {value for values in history[0].state.values() for value in values}
    fresh = {key: tuple(v for v in values if v not in before) for key, values in history[-1].state.items()}
    return {key: values for key, values in fresh.items() if values}


def some_keys(keys: Iterable[str]) -> Callable[[History], State]:
    wanted = set(keys)
    return lambda history: {key: values for key, values in history[-1].state.items() if key[1] in wanted}


def find_order(base: State, happened: Sequence[Happened]) -> tuple[str, ...] | None:
    """An order that explains all operations, by their names; None if there is none."""
    nodes = 0

    def search(history: History, left: tuple[Happened, ...]) -> tuple[str, ...] | None:
        nonlocal nodes
        nodes += 1
        assert nodes < NODES_MAX, "too many orders"
        if not any(one.is_sure for one in left):
            return ()
        first_end = min((one.end if one.is_sure else inf for one in left), default=inf)
        for one in left:
            if one.begin > first_end:
                continue
            after = one.step(history)
            if after is not None:
                rest = search(after, tuple(other for other in left if other is not one))
                if rest is not None:
                    return (one.name, *rest)
        return None

    return search((Entry("", base),), tuple(sorted(happened, key=lambda one: one.begin)))
