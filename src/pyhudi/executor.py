"""How work is spread: run these tasks, give back their values. The engines are in `engine/`."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs a function on many tasks, somewhere: in this thread, in others, on a cluster."""

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """The function's value for each task, in the order of the tasks.

        `function` is of module level, and tasks and values are frozen values or Arrow data: they may travel.
        Order of execution: any, and several at once.
        Memory: all tasks and all values.
        Raises: what a task raised, once no other task is running any more; tasks that had not begun are
        not begun. Of several that failed, the one that stands first among the tasks.
        """
