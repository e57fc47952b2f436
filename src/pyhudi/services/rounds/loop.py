"""Round after round over tables: look at what is due, carry it out, wait, look again.

A service that fails is tried again later and later, and stops no other. One that another process is carrying out is
left to it: several processes share the work of a table, and what a dead one leaves is due again to the others.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from pyhudi.errors import Conflict, HudiError
from pyhudi.services.rounds.due import Due, Service
from pyhudi.timeline.clock import Clock

log = logging.getLogger("pyhudi")

RETRY_MAX_MS: Final = 600_000
"""A service that goes on failing is tried so often at least."""


class State(StrEnum):
    """What became of a service when it was last looked at.

    IDLE: nothing was due. DUE: a dry run found something. BUSY: another process was in its way.
    """

    IDLE = "idle"
    DUE = "due"
    RUNNING = "running"
    DONE = "done"
    BUSY = "busy"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """How one service of one table stands.

    `reason`: why the state is so, in words. `runs`: how often it did something. `failures`: how often it failed since
    it last did not. `requested`: the newest instant that it made. `since_ms`, `retry_ms`: the moment when this state
    began, and that before which a failed one is not tried again; in milliseconds since the epoch.
    """

    service: Service
    state: State
    reason: str
    since_ms: int
    runs: int = 0
    failures: int = 0
    requested: str | None = None
    retry_ms: int = 0


@dataclass(frozen=True, slots=True)
class Served:
    """What carrying out a service did. `reason`: why it did nothing; empty if it did something."""

    requested: str | None
    reason: str


class ServedTable(Protocol):
    """A table that is looked after."""

    @property
    def uri(self) -> str:
        """Where it lies, for people."""

    def due(self, services: Collection[Service]) -> Iterable[Due]:
        """What is due of these services now. Each is judged when it is asked for."""

    def carry_out(self, service: Service) -> Served:
        """Do what is due of one service."""


Told = Callable[[str, ServiceStatus], None]
"""Called with a table's address when one of its services has another state, or has failed once more."""


class Rounds:
    """Looks after tables, one round at a time.

    `interval_ms`: between rounds; a service that failed waits as long, then twice as long, and so on. `is_stopped`:
    asked before each service. `tell`: told of each change.
    """

    def __init__(
        self,
        tables: Sequence[ServedTable],
        services: Collection[Service],
        clock: Clock,
        *,
        interval_ms: int,
        is_stopped: Callable[[], bool],
        tell: Told,
    ) -> None:
        self._tables, self._services, self._clock = tables, services, clock
        self._interval_ms, self._is_stopped, self._tell = interval_ms, is_stopped, tell
        self._status: dict[tuple[str, Service], ServiceStatus] = {}
        self.count = 0

    @property
    def status(self) -> Mapping[tuple[str, Service], ServiceStatus]:
        """By table and service. A service that was not looked at yet is missing."""
        return self._status

    def round(self) -> None:
        """Look at every table once, and do what is due. Errors of tables and services are kept in the status."""
        for table in self._tables:
            if not self._is_stopped():
                self._serve(table)
        self.count += 1

    def _serve(self, table: ServedTable) -> None:
        """Do what is due on a table. After a service that did something the rest is looked at anew."""
        left = [service for service in Service if service in self._services and self._may_try(table, service)]
        while left:
            try:
                verdicts = iter(table.due(left))
            except Exception as error:  # of any kind, as below
                for service in left:
                    self._note(table, service, State.FAILED, _in_words(error))
                return
            left = self._after_first_done(table, left, verdicts)

    def _after_first_done(
        self, table: ServedTable, services: Sequence[Service], verdicts: Iterator[Due]
    ) -> list[Service]:
        """Go through the services until one has done something. Returns those behind it."""
        for number, service in enumerate(services):
            if self._is_stopped():
                return []
            try:
                verdict = next(verdicts)
            except Exception as error:  # of any kind, as below
                self._note(table, service, State.FAILED, _in_words(error))
                continue
            if not verdict.is_due:
                self._note(table, service, State.IDLE, verdict.reason)
            elif self._carry_out(table, verdict):
                return list(services[number + 1 :])
        return []

    def _may_try(self, table: ServedTable, service: Service) -> bool:
        before = self._status.get((table.uri, service))
        return before is None or self._clock.now_ms() >= before.retry_ms

    def _carry_out(self, table: ServedTable, verdict: Due) -> bool:
        """Carry a service out. Returns whether it did something."""
        service = verdict.service
        self._note(table, service, State.RUNNING, verdict.reason)
        try:
            served = table.carry_out(service)
        except Conflict as error:
            self._note(table, service, State.BUSY, str(error))
        except Exception as error:  # of any kind: the other services and tables are looked after all the same
            self._note(table, service, State.FAILED, _in_words(error))
        else:
            state = State.IDLE if served.reason else State.DONE
            self._note(table, service, state, served.reason or verdict.reason, served.requested)
            return state is State.DONE
        return False

    def _note(
        self, table: ServedTable, service: Service, state: State, reason: str, requested: str | None = None
    ) -> None:
        now_ms = self._clock.now_ms()
        known = self._status.get((table.uri, service))
        before = known or ServiceStatus(service, state, reason, now_ms)
        since_ms = before.since_ms if state is before.state else now_ms
        after = replace(before, state=state, reason=reason, since_ms=since_ms, requested=requested or before.requested)

        match state:
            case State.DONE:
                after = replace(after, runs=before.runs + 1, failures=0, retry_ms=0)
            case State.FAILED:
                wait_ms = min(self._interval_ms << min(before.failures, 16), max(RETRY_MAX_MS, self._interval_ms))
                after = replace(after, failures=before.failures + 1, retry_ms=now_ms + wait_ms)
                log.warning(
                    "%s: %s failed, and is tried again in %s s: %s", table.uri, service, wait_ms // 1000, reason
                )
            case State.IDLE:
                after = replace(after, failures=0, retry_ms=0)
            case _:
                pass

        self._status[table.uri, service] = after
        if known is None or state is not known.state or state is State.FAILED:
            self._tell(table.uri, after)


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, HudiError) else f"{type(error).__name__}: {error}"
