"""The events, as values. Times are in milliseconds, sizes in bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.errors import hide_secrets


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a table. `uri`: where the table lies, without secrets."""

    uri: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", hide_secrets(self.uri))


@dataclass(frozen=True, slots=True)
class WriteDone(Event):
    """A write has landed.

    `action`: of its instant. `inserted`, `updated`, `deleted`: rows. `replaced`: file groups that it replaced.
    `duration_ms`: of the whole call, with the services that follow it. `phases_ms`: `begin` and `complete` are its
    turns at the table, with the wait for it, and `complete` has the clean and the archival that follow; `place` finds
    where rows go; `write` writes the files. `retries`: how often it was planned anew.
    """

    table: str
    operation: str
    action: str
    requested: str
    completed: str
    inserted: int
    updated: int
    deleted: int
    replaced: int
    files: int
    size_bytes: int
    duration_ms: int
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    retries: int = 0


@dataclass(frozen=True, slots=True)
class WriteFailed(Event):
    """A write has raised an error. `error`: the name of its class."""

    table: str
    operation: str
    error: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class VerdictGiven(Event):
    """An action was about to complete, and was held against what others did. `conflict`: why it must not, or empty."""

    action: str
    requested: str
    conflict: str = ""


@dataclass(frozen=True, slots=True)
class Replanned(Event):
    """Another writer was in a write's way, and the write is planned anew."""

    table: str
    operation: str
    why: str


@dataclass(frozen=True, slots=True)
class LockAsked(Event):
    """Somebody wanted to hold the table. `purpose`: for what. `waited_ms`: until it was taken, or given up."""

    purpose: str
    waited_ms: int
    is_taken: bool


@dataclass(frozen=True, slots=True)
class LockFreed(Event):
    """A turn at the table has ended."""

    purpose: str
    held_ms: int


@dataclass(frozen=True, slots=True)
class ServiceDone(Event):
    """A service has done something. `service`: such as `clean`. `requested`: the newest action that it completed.
    `figures`: the numbers of its results, by name.
    """

    service: str
    duration_ms: int
    requested: str | None = None
    figures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceFailed(Event):
    """A service that was called, or that followed a write, has failed. `error`: the name of the error's class."""

    service: str
    error: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Pending:
    """Planned actions of one kind that have not completed. `earliest`: the requested time of the first."""

    count: int
    earliest: str
    age_ms: int


@dataclass(frozen=True, slots=True)
class Backlog(Event):
    """What services have before them, as a write found it. `pending`: by action; an action without any is left out."""

    pending: Mapping[str, Pending]
