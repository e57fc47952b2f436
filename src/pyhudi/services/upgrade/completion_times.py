"""The completion times of a timeline whose layout has no place for them, kept until the table has such a layout again.

Layout 1 takes the modification time of a completed file for its completion time, and an object store lets nobody choose
it. Without the times of before, a table that comes back from version 6 would have completed all of its commits when it
went there: incremental readers would get everything again, and logs would lie upon base files that hold them already.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.format.names import HOODIE, join
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.protocol import Storage

TIMES: Final = join(HOODIE, ".pyhudi_completion_times")


class CompletionTimes:
    """Completion times by requested time and action."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known

    def of(self, instant: Instant) -> str | None:
        return self._known.get(_key(instant))


def keep_times(storage: Storage, instants: Iterable[Instant]) -> None:
    """Keep the completion times of instants, in place of those that were kept before. One put."""
    known = {_key(one): one.completed for one in instants if one.is_completed and one.completed is not None}
    storage.put(TIMES, json.dumps(known, indent=0, sort_keys=True).encode())


def read_times(storage: Storage) -> CompletionTimes:
    """The times that were kept; none where none were. One get."""
    try:
        known = json.loads(storage.get(TIMES))
        return CompletionTimes({str(key): str(completed) for key, completed in known.items()})
    except NotFound:
        return CompletionTimes({})
    except (ValueError, AttributeError) as error:
        raise CorruptFile(TIMES, 0, expected="completion times by instant", found=repr(error)) from error


def _key(instant: Instant) -> str:
    """Layouts differ in the actions of pending instants only."""
    return f"{instant.requested}.{instant.action}"
