"""Every disk that an operation can leave behind when the power goes."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage

T = TypeVar("T")

REAL_EVERY: Final = 8
"""At one of so many changes the operation really dies."""


def crash_points(
    operation: Callable[[Storage], None], disk: Callable[[], MemoryStorage]
) -> Iterator[tuple[str, MemoryStorage]]:
    """One disk a crash point, with a description of the crash: before each change, and after the last one.

    `disk`: for an operation on a table that exists, `table_storage.copy`; for a new one, `MemoryStorage`.
    The operation must make its changes in a certain order: in one thread. It runs once, on a disk that is copied before
    each change. No operation may swallow a crash, so at every `REAL_EVERY`th change it runs anew and dies there.
    """
    kept = _KeepingStorage(disk())
    operation(kept)

    for at, (fatal, before) in enumerate(kept.befores):
        died = _died(operation, disk(), at) if at % REAL_EVERY == 0 else None
        yield f"change {at}, {fatal}, did not land", died or before
    if kept.befores:
        yield f"change {len(kept.befores) - 1}, {kept.befores[-1][0]}, landed", kept.memory


def distinct(points: Iterable[tuple[str, MemoryStorage]]) -> Iterator[tuple[str, MemoryStorage]]:
    """Each disk once: some changes change nothing, such as a file that is put again."""
    seen = set()
    for what, disk in points:
        content = frozenset((file.path, disk.get(file.path)) for file in disk.list("", recursive=True))
        if content not in seen:
            seen.add(content)
            yield what, disk


def every_nth(points: Iterable[tuple[str, MemoryStorage]], n: int) -> Iterator[tuple[str, MemoryStorage]]:
    """Every nth crash point, from the first one on."""
    return islice(points, 0, None, n)


def _died(operation: Callable[[Storage], None], after: MemoryStorage, survives: int) -> MemoryStorage | None:
    """The disk of an operation that died at a change; None where it makes fewer changes this time."""
    storage = CrashingStorage(after, survives, lands=False)
    try:
        operation(storage)
    except Crash:
        assert storage.dead
        return after
    assert not storage.dead, f"the operation swallowed the crash at {storage.fatal}"
    return None


class _KeepingStorage(CrashingStorage):
    """Never crashes, and keeps what the disk was before each change, with the change in words."""

    def __init__(self, memory: MemoryStorage) -> None:
        super().__init__(memory, survives=1 << 60, lands=False)
        self.memory = memory
        self.befores: list[tuple[str, MemoryStorage]] = []

    def change(self, what: str, apply: Callable[[], T]) -> T:
        def keep_and_apply() -> T:
            self.befores.append((what, self.memory.copy()))
            return apply()

        return super().change(what, keep_and_apply)
