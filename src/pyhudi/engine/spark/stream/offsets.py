"""Where a batch of a stream ends, as a query's checkpoint keeps it."""

import json
from dataclasses import dataclass

from pyhudi.errors import Invalid

_END, _OLDER_END, _START = "offsetCommitTime", "commitTime", "start"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Where a batch ends. `start`: where the stream begins, in the offset of its first batch; None in later ones.

    Seen: the entry `offsetCommitTime` is that of 1.2.0; that of 0.15 is `commitTime`.
    """

    end: str
    start: str | None = None

    def entries(self) -> dict[str, str]:
        return {_END: self.end, **({} if self.start is None else {_START: self.start})}

    def format(self) -> str:
        return json.dumps(self.entries())

    @classmethod
    def parse(cls, text: str) -> "StreamOffset":
        """Raises: Invalid for a text that is no offset of a Hudi table."""
        try:
            found = json.loads(text)
        except ValueError:
            found = text
        return cls.of_entries(found)

    @classmethod
    def of_entries(cls, found: object) -> "StreamOffset":
        """Raises: Invalid for what is no offset of a Hudi table."""
        if isinstance(found, dict) and (end := found.get(_END) or found.get(_OLDER_END)):
            return cls(str(end), found.get(_START))
        raise Invalid(
            f"offset {str(found)[:80]!r} of a stream: expected one of a Hudi table; the checkpoint is of another source"
        )
