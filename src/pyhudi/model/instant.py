"""Instants: what happened to a table, as data."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["REQUESTED", "INFLIGHT", "COMPLETED"]

STATES: tuple[State, ...] = ("REQUESTED", "INFLIGHT", "COMPLETED")

# A pending service is named after the service, its completion after what it leaves behind.
# Spec: 1.0, "Timeline"; format/timeline.md section 2, "comparable action".
COMPLETED_ACTION = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}

WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
PENDING_SERVICE_ACTIONS = frozenset({"compaction", "logcompaction", "clustering"})


@dataclass(frozen=True, slots=True)
class Instant:
    """One action at its highest state on the timeline.

    `requested`: its requested time, which is its identity. `completed`: its completion time, None
    while pending (layout 1 has none in names: there it is the completed file's modification time).
    `action`: as named in the file of its highest state, such as `commit`, `compaction`, `rollback`.
    `is_legacy`: a layout-2 timeline keeps it under a name without completion time, its payload in
    the layout-1 form (left from before an upgrade).
    """

    requested: str
    action: str
    state: State
    completed: str | None = None
    is_legacy: bool = False

    @property
    def is_completed(self) -> bool:
        return self.state == "COMPLETED"

    @property
    def comparable_action(self) -> str:
        """The action under which this instant completes, equal for all of its states."""
        return COMPLETED_ACTION.get(self.action, self.action)
