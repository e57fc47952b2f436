"""Values could come back in another order, or a failure could surface while other tasks still write files."""

import threading
import time

import pytest

from pyhudi.engine.local.executors import LocalExecutor, SerialExecutor
from pyhudi.errors import Invalid
from pyhudi.executor import Executor

EXECUTORS = [SerialExecutor(), LocalExecutor(None), LocalExecutor(1), LocalExecutor(4)]


class Failed(BaseException):
    """As `Crash`, it is no Exception."""


@pytest.mark.parametrize("executor", EXECUTORS)
class TestEveryExecutor:
    def test_values_come_in_the_order_of_the_tasks(self, executor: Executor) -> None:
        def slow_first(task: int) -> int:
            time.sleep(0.01 if task == 0 else 0)
            return task * task

        assert executor.run(slow_first, range(20)) == [task * task for task in range(20)]

    def test_no_tasks_give_no_values(self, executor: Executor) -> None:
        assert executor.run(str, []) == []

    def test_a_task_may_run_tasks(self, executor: Executor) -> None:
        def outer(task: int) -> int:
            return sum(executor.run(abs, [-task] * 10))

        assert executor.run(outer, range(10)) == [task * 10 for task in range(10)]

    @pytest.mark.parametrize("error", [ValueError, Failed])
    def test_a_failure_is_raised(self, executor: Executor, error: type[BaseException]) -> None:
        def fail(task: int) -> int:
            if task == 3:
                raise error("the third")
            return task

        with pytest.raises(error, match="the third"):
            executor.run(fail, range(10))

    def test_after_a_failure_nothing_is_begun_and_nothing_still_runs(self, executor: Executor) -> None:
        begun: list[int] = []
        ended: list[int] = []

        def fail_first(task: int) -> None:
            begun.append(task)
            if task == 0:
                raise ValueError("the first")
            time.sleep(0.02)
            ended.append(task)

        with pytest.raises(ValueError, match="the first"):
            executor.run(fail_first, range(100))

        assert len(begun) < 20
        assert sorted(begun) == [0, *sorted(ended)]


def test_of_several_failures_the_first_among_the_tasks_is_raised() -> None:
    both = threading.Barrier(2)

    def fail(task: int) -> None:
        both.wait()
        time.sleep(0.02 if task == 0 else 0)
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task 0"):
        LocalExecutor(2).run(fail, [0, 1])


def test_tasks_run_at_the_same_time() -> None:
    together = threading.Barrier(3)

    assert len(LocalExecutor(3).run(lambda _: together.wait(timeout=60), range(3))) == 3


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_invalid(workers: int) -> None:
    with pytest.raises(Invalid, match="workers: expected 1 or more"):
        LocalExecutor(workers)
