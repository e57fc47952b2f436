"""The protocol by which work is spread: run these tasks, return their values. Implementations are in `engine/`."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs a function on many tasks, somewhere: in this thread, in others, on a cluster."""

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """The function's value for each task, in the order of the tasks.

        `function` must be a module-level function. Tasks and values must be frozen values or Arrow data, because they
        may be sent to other processes.
        Order of execution: any, and several at once.
        Memory: all tasks and all values.
        Raises: what a task raised, once no other task is running. Tasks that had not begun are not begun. If several
        tasks failed, the error of the first among them in the order of the tasks.
        """
