"""Where work on file groups is done: in threads of this process, or in tasks of Spark."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pyhudi.storage.protocol import Storage

Target = TypeVar("Target", contravariant=True)
Task = TypeVar("Task", contravariant=True)
SharedTarget = TypeVar("SharedTarget")
OneTask = TypeVar("OneTask")
Made = TypeVar("Made")


class SliceHandle(Protocol[Target, Task, Made]):
    """What is done to slices: a module-level function, which may be sent to other processes.

    The target is what all tasks of one attempt at an action share. It, the tasks and what is made of them are
    picklable.
    """

    def __call__(
        self, target: Target, task: Task, *, task_attempt: int, storage: Storage | None = None
    ) -> list[Made]: ...


class SliceWork(Protocol):
    """Runs a handle on tasks."""

    def run(
        self, handle: SliceHandle[SharedTarget, OneTask, Made], target: SharedTarget, tasks: Sequence[OneTask]
    ) -> list[Made]:
        """What the handle states of each task's files, in the order of the tasks. Several tasks run at once.

        A task may be attempted more than once. The statement of one attempt counts, and no two attempts at a task get
        the same `task_attempt`. Raises: what a handle raised.
        """
