"""Up to which commits an index of one's own is true: its state as a text, and what it has missed since.

A single instant would not do: of two writers at once, the one that began first may complete last. So the state names
every completed write of the active timeline.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pyhudi.format.timeline.instant import Instant
from pyhudi.timeline.active import Timeline

_FORM = 1


@dataclass(frozen=True, slots=True)
class Known:
    """What an index was told of.

    `writes`: requested times of the completed writes on the active timeline. `start`: the timeline's start then;
    earlier writes were archived and known. `clean`: requested time of the newest completed clean.
    """

    writes: frozenset[str]
    start: str | None
    clean: str | None

    @classmethod
    def of(cls, timeline: Timeline) -> Self:
        """What an index knows that is true to the whole timeline."""
        cleans = (i.requested for i in timeline if i.action == "clean" and i.is_completed)
        writes = frozenset(instant.requested for instant in timeline.completed_writes)
        return cls(writes, timeline.start, max(cleans, default=None))

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """The inverse of `text`. None for a text of another release, and for no text."""
        try:
            found = json.loads(text or "")
            if found["form"] != _FORM:
                return None
            return cls(frozenset(found["writes"]), found["start"], found["clean"])
        except (ValueError, KeyError, TypeError):
            return None

    @property
    def text(self) -> str:
        return json.dumps({"form": _FORM, "start": self.start, "clean": self.clean, "writes": sorted(self.writes)})

    def is_of_same_writes(self, now: "Known") -> bool:
        """Whether the index knows the same writes by now. Cleans and archivings take none away."""
        archived = self.writes - now.writes
        return now.writes <= self.writes and all(requested < (now.start or "") for requested in archived)

    def may_have_lost_files(self, now: "Known") -> bool:
        """Whether a clean may have completed since. One that did may be archived by now."""
        return self.clean != now.clean or (now.clean is None and self.start != now.start)

    def missed(self, timeline: Timeline) -> tuple[Instant, ...] | None:
        """The completed writes that the index was not told of, by requested time. None: it must be built anew.

        It must, where a write that it knows was taken back, or one was archived that it does not know. Requests: reads
        the history only where the start of the timeline has moved.
        """
        if any(not timeline.is_committed(requested) for requested in self.writes):
            return None
        if timeline.start != self.start and any(True for _ in self._archived_unknown(timeline)):
            return None
        return tuple(i for i in timeline.completed_writes if i.requested not in self.writes)

    def _archived_unknown(self, timeline: Timeline) -> Iterator[Instant]:
        archived = timeline.archived_writes(requested_from=self.start)
        return (i for i in archived if i.requested not in self.writes)
