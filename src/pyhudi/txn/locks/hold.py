"""The values of a guard that is held: its holder, and the check that it is still held."""

import json
import os
import socket
from dataclasses import asdict, dataclass
from typing import Protocol

from pyhudi.errors import Conflict

TEXT_BYTES_MAX = 4_096


class Held(Conflict):
    """The guard is held. `holder`: says who holds it in which turn; empty if nobody can say."""

    def __init__(self, message: str, *, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


class Hold(Protocol):
    """A guard that was acquired."""

    def confirm(self) -> None:
        """Make sure that the table stays ours for long enough to complete a commit. Called right before a commit.

        Raises: LockLost when the table is no longer ours, or when nobody can say.
        """


class CertainHold:
    """A hold that nothing but its own process can end. It needs no confirmation."""

    def confirm(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a guard, for which purpose, and since when by the holder's clock."""

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
        """The holder that a text names. None for a text that names no holder: it may be half written just now."""
        try:
            fields = json.loads(text)
            return cls(int(fields["pid"]), *(str(fields[name]) for name in ("host", "purpose", "since")))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    @property
    def told(self) -> str:
        """The holder in a message. Says so if it is this very process."""
        return tell_holder(str(self))

    @classmethod
    def this_process(cls, purpose: str, now: str) -> "Holder":
        return cls(os.getpid(), socket.gethostname(), purpose, now)


def tell_holder(text: str) -> str:
    """A holder's text for a message. If the holder is this very process, the message says so.

    Example: "process 12 on host (upsert of table 't', since ...), which is this process: another of its threads".
    """
    is_own = text.startswith(f"process {os.getpid()} on {socket.gethostname()} (")
    return f"{text}, which is this process: another of its threads" if is_own else text
