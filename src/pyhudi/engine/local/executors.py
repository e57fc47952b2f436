"""Executors within this process."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.storage.protocol import Storage
from pyhudi.write.handles.slice_work import Made, OneTask, SharedTarget, SliceHandle

T = TypeVar("T")
R = TypeVar("R")


class SerialExecutor:
    """Runs one task after the other in the calling thread. Tests of crashes need this fixed order."""

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        return [function(task) for task in tasks]


class LocalExecutor:
    """Runs tasks in threads of this process. pyarrow and compiled loops release the GIL, so these run at the same time.

    The threads live for one `run`: nothing is left behind to close or to lose in a fork, and a task may call `run`
    itself. Starting them costs about 0.1 ms.
    """

    def __init__(self, workers: int | None = None) -> None:
        """`workers`: threads at most; None: as many as the processors that this process may use."""
        if workers is not None and workers < 1:
            raise Invalid(f"workers: expected 1 or more, or None for one a processor, found {workers:,}")
        self._workers = workers or _usable_processors()

    @property
    def workers(self) -> int:
        return self._workers

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        threads = min(self._workers, len(tasks))
        if threads <= 1:
            return SerialExecutor().run(function, tasks)
        with ThreadPoolExecutor(threads, thread_name_prefix="pyhudi") as pool:
            futures = [pool.submit(function, task) for task in tasks]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:  # a KeyboardInterrupt comes this way too
                for future in futures:
                    future.cancel()
        for future in futures:
            if not future.cancelled():
                future.result()
        return [future.result() for future in futures]


def worker_count(executor: Executor) -> int:
    """How many tasks an executor runs at a time in this process: one, unless it says more."""
    return executor.workers if isinstance(executor, LocalExecutor) else 1


class LocalSliceWork:
    """Runs the slices of a service as tasks of an executor in this process."""

    def __init__(self, executor: Executor, storage: Storage) -> None:
        self._executor, self._storage = executor, storage

    def run(
        self, handle: SliceHandle[SharedTarget, OneTask, Made], target: SharedTarget, tasks: Sequence[OneTask]
    ) -> list[Made]:
        def run_one(task: OneTask) -> list[Made]:
            return handle(target, task, task_attempt=0, storage=self._storage)

        return [one for made in self._executor.run(run_one, tasks) for one in made]


def _usable_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
