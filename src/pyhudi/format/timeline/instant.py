"""Instants: the actions on a table, as values."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["REQUESTED", "INFLIGHT", "COMPLETED"]

STATES: tuple[State, ...] = ("REQUESTED", "INFLIGHT", "COMPLETED")

# A pending service's action is named after the service. Its completed action is named after the result.
# Spec: 1.0, "Timeline"; format/timeline.md section 2, "comparable action".
COMPLETED_ACTION = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}

WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
PENDING_SERVICE_ACTIONS = frozenset({"compaction", "logcompaction", "clustering"})


@dataclass(frozen=True, slots=True)
class Instant:
    """One action, in the latest state that it reached on the timeline.

    `requested`: its requested time, which identifies it. `completed`: its completion time, None while it is pending. In
    layout 1 names hold no completion time: there it is the modification time of the completed file.
    `action`: as named in the file of its latest state, such as `commit`, `compaction`, `rollback`.
    `is_legacy`: the instant is on a layout-2 timeline, but was written before the upgrade: its file's name has no
    completion time, and its content has the layout-1 form.
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
        """The action that this instant has, or will have, when completed. The same in all of its states."""
        return COMPLETED_ACTION.get(self.action, self.action)
