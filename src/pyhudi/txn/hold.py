"""What holding a table's guard means: who holds it, and whether it is still held."""

import json
import os
import socket
from dataclasses import asdict, dataclass
from typing import Protocol

TEXT_BYTES_MAX = 4_096


class Hold(Protocol):
    """A guard that was acquired."""

    def confirm(self) -> None:
        """Make sure that the table is still ours, for long enough to complete a commit; asked right before that.

        Raises: LockLost when it is not, or when nobody can say.
        """


class CertainHold:
    """A hold that only its own process can end."""

    def confirm(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a guard, what for, and since when by the holder's clock."""

    pid: int
    host: str
    purpose: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.purpose}, since {self.since})"

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()[:TEXT_BYTES_MAX]

    @classmethod
    def decode(cls, text: bytes) -> "Holder | None":
        """The holder, or None where the text is of no one: another writer may be writing it just now."""
        try:
            fields = json.loads(text)
            return cls(int(fields["pid"]), *(str(fields[name]) for name in ("host", "purpose", "since")))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    @classmethod
    def this_process(cls, purpose: str, now: str) -> "Holder":
        return cls(os.getpid(), socket.gethostname(), purpose, now)
