"""Every disk that an operation can leave behind when the power goes."""

import itertools
from collections.abc import Callable, Iterator

from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage


def crash_points(
    operation: Callable[[Storage], None], disk: Callable[[], MemoryStorage]
) -> Iterator[tuple[str, MemoryStorage]]:
    """One disk a crash point, with a description of the crash; each time `operation` runs on a new `disk()`.

    `disk`: for an operation on a table that exists, `table_storage.copy`; for a new one, `MemoryStorage`.
    The operation must make its changes in a certain order: in one thread.
    """
    for lands in (False, True):
        for survives in itertools.count():
            after = disk()
            storage = CrashingStorage(after, survives, lands)
            try:
                operation(storage)
            except Crash:
                assert storage.dead
            else:
                assert not storage.dead, f"the operation swallowed the crash at {storage.fatal}"
                break
            yield f"change {survives}, {storage.fatal}, {'landed' if lands else 'did not land'}", after
