"""Measures what runs while somebody listens. While nobody does, each function here only calls what it is given."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import TypeVar

from pyhudi.errors import Conflict
from pyhudi.metrics.events import LockAsked, LockFreed, ServiceDone, ServiceFailed
from pyhudi.metrics.listeners import is_listening, tell

T = TypeVar("T")

_OFF = nullcontext()


@dataclass
class WriteMeasures:
    """What is measured within one write. `started`: by the monotonic clock, in seconds."""

    started: float = field(default_factory=time.perf_counter)
    phases: dict[str, float] = field(default_factory=dict)
    action: str = ""
    retries: int = 0

    @property
    def duration_ms(self) -> int:
        return elapsed_ms(self.started)

    @property
    def phases_ms(self) -> Mapping[str, int]:
        return {name: round(seconds * 1000) for name, seconds in self.phases.items()}


_current: ContextVar[WriteMeasures | None] = ContextVar("pyhudi_write_measures", default=None)


@contextmanager
def measured_write() -> Iterator[WriteMeasures]:
    """Collect the measures of the write that runs in the block."""
    measures = WriteMeasures()
    token = _current.set(measures)
    try:
        yield measures
    finally:
        _current.reset(token)


def phase(name: str) -> AbstractContextManager[None]:
    """Count the block's time as a phase of the write that runs. Repeated phases add up."""
    measures = _current.get()
    return _OFF if measures is None else _timed(measures, name)


@contextmanager
def _timed(measures: WriteMeasures, name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        measures.phases[name] = measures.phases.get(name, 0.0) + time.perf_counter() - start


def note_action(action: str) -> None:
    """Remember the action of the write that runs."""
    measures = _current.get()
    if measures is not None:
        measures.action = action


def count_retry() -> None:
    """Count an attempt of the write that runs."""
    measures = _current.get()
    if measures is not None:
        measures.retries += 1


@contextmanager
def told_hold(uri: str, purpose: str, holding: AbstractContextManager[T]) -> Iterator[T]:
    """Enter `holding`, which waits for the table, and tell how long the wait and the hold were."""
    if not is_listening():
        with holding as hold:
            yield hold
        return

    with ExitStack() as stack:
        start = time.perf_counter()
        try:
            hold = stack.enter_context(holding)
        except Conflict:
            tell(LockAsked(uri, purpose, elapsed_ms(start), is_taken=False))
            raise
        tell(LockAsked(uri, purpose, elapsed_ms(start), is_taken=True))

        taken = time.perf_counter()
        stack.callback(lambda: tell(LockFreed(uri, purpose, elapsed_ms(taken))))
        yield hold


def told(uri: str, service: str, run: Callable[[], T]) -> Callable[[], T]:
    """A run of a service, of which listeners are told if it does something, or fails."""
    return partial(_run_told, uri, service, run) if is_listening() else run


def _run_told(uri: str, service: str, run: Callable[[], T]) -> T:
    start = time.perf_counter()
    try:
        result = run()
    except Exception as error:
        tell(ServiceFailed(uri, service, type(error).__name__, elapsed_ms(start)))
        raise

    done = [one for one in (result if isinstance(result, tuple) else (result,)) if _has_done(one)]
    if done:
        figures: dict[str, int] = {}
        for one in done:
            for name, value in _figures(one).items():
                figures[name] = figures.get(name, 0) + value
        tell(ServiceDone(uri, service, elapsed_ms(start), getattr(done[-1], "requested", None), figures))
    return result


def _has_done(result: object) -> bool:
    """Whether a service has done something. What it has only planned has a requested time, and has not completed."""
    if getattr(result, "requested", None) is not None:
        return getattr(result, "completed", "") is not None
    return any(_figures(result).values())


def _figures(result: object) -> dict[str, int]:
    """The numbers of a result; its moments, such as `saved_at_ms`, are none."""
    if not is_dataclass(result) or isinstance(result, type):
        return {}
    values = {one.name: getattr(result, one.name) for one in fields(result) if not one.name.endswith("_at_ms")}
    return {name: value for name, value in values.items() if isinstance(value, int) and not isinstance(value, bool)}


def elapsed_ms(start: float) -> int:
    return round((time.perf_counter() - start) * 1000)
