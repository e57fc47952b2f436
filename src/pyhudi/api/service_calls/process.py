"""Services that run by themselves, beside the writers of tables: `pyhudi.services.run`."""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pyhudi.api import frames, writes
from pyhudi.api.handle import TableHandle
from pyhudi.api.service_calls import indexes
from pyhudi.api.service_calls.clustering import clustering_job
from pyhudi.api.service_calls.jobs import clean_job, compaction_job, slice_work
from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid, hide_secrets
from pyhudi.metrics.events import Backlog
from pyhudi.metrics.listeners import is_listening, tell
from pyhudi.options.arguments import several_texts
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.archive.run import run_archive
from pyhudi.services.backlog import pending_services
from pyhudi.services.clean.run import run_cleans
from pyhudi.services.clustering.run import run_clusterings
from pyhudi.services.compaction.inputs import CompactionKind
from pyhudi.services.compaction.run import run_compactions
from pyhudi.services.rounds.due import Due, Look, Service, find_due, plans_new
from pyhudi.services.rounds.loop import Rounds, Served, ServiceStatus, State, Told
from pyhudi.services.rounds.telling import ErrorsLogged
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.write.file_settings import base_file_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TableLike = HudiTable | str | os.PathLike[str]

INTERVAL_S = 10.0
"""Seconds between two rounds, if nobody says otherwise."""

INTERVAL_MAX_S = 366 * 24 * 3600
"""A machine waits no longer than some hundred years at a time, and nobody means as long as that."""

_TOLD_AS = {Service.LOG_COMPACTION: "logcompaction"}
"""The names of services in events, where they are others: events name the actions."""


class Stop(Protocol):
    """Ends a run: a `threading.Event`, or what acts like one."""

    def is_set(self) -> bool:
        """Whether the run is to end."""

    def wait(self, timeout: float) -> bool:
        """Wait so many seconds, or until the run is to end. Returns whether it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """How a run of services ended, or, of a dry run, what it found.

    `rounds`: how often it looked at the tables. `tables`: each by its address, with its services in the order of a
    round. `has_failed`: whether a service of any table failed when it was last tried.
    """

    rounds: int
    tables: Mapping[str, tuple[ServiceStatus, ...]]

    @property
    def has_failed(self) -> bool:
        return any(one.state is State.FAILED for services in self.tables.values() for one in services)

    def document(self) -> dict[str, Any]:
        """The report as a JSON document holds it."""
        return {
            "rounds": self.rounds,
            "has_failed": self.has_failed,
            "tables": {uri: {one.service.value: asdict(one) for one in found} for uri, found in self.tables.items()},
        }


def run(
    tables: TableLike | Iterable[TableLike],
    *,
    services: Iterable[str] | None = None,
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
    interval_s: float = INTERVAL_S,
    once: bool = False,
    dry_run: bool = False,
    stop: Stop | None = None,
    on_change: Callable[[ServiceReport], None] | None = None,
    on_round: Callable[[ServiceReport], None] | None = None,
    spark: "SparkSession | None" = None,
) -> ServiceReport:
    """Look after tables beside their writers: carry out the services that are due, round after round.

    `tables`: one table or several, opened or as paths. `services`: names out of `failed_writes`, `compaction`,
    `log_compaction`, `clustering`, `indexing`, `expiry`, `clean`, `archive`; None: those that the tables' properties
    and `options` have on. What is pending of a service is carried out in any case. `interval_s`: seconds between two
    rounds. `once`: one round. `dry_run`: one round that only says what is due, and why the rest is not. `stop`: ends
    the run when it is set; a service that is running is finished first. `on_change`: gets the report each time that a
    service changes its state or fails once more. `on_round`: gets it after each round. `spark`: the session on whose
    cluster compactions and clusterings run.

    Errors of services and tables do not end the run: they are in the report, are logged, and are tried again. Errors
    of `on_change` and `on_round` are logged. Any number of processes may look after one table. Without `once` and
    `stop` it runs until it is interrupted.
    Raises: NotFound for a path without a table; Invalid for an unknown service or a bad option, before the first round.
    """
    _check_course(interval_s, stop, {"on_change": on_change, "on_round": on_round})
    named = _services(services)
    chosen = tuple(Service) if services is None else named
    served = [_Served(table, named, options, spark) for table in _opened(tables, storage_options)]
    for one in served:
        one.check_options()
    if dry_run:
        return ServiceReport(rounds=1, tables={one.uri: one.found(chosen) for one in served})

    ends: Stop = stop if stop is not None else threading.Event()
    return _run(served, chosen, ends, interval_s, once=once, on_change=on_change, on_round=on_round)


def _run(
    served: "Sequence[_Served]",
    chosen: Collection[Service],
    ends: Stop,
    interval_s: float,
    *,
    once: bool,
    on_change: Callable[[ServiceReport], None] | None,
    on_round: Callable[[ServiceReport], None] | None,
) -> ServiceReport:
    def report() -> ServiceReport:
        found = {
            table.uri: tuple(rounds.status[key] for one in Service if (key := (table.uri, one)) in rounds.status)
            for table in served
        }
        return ServiceReport(rounds=rounds.count, tables=found)

    tell_all = None if on_change is None else ErrorsLogged(on_change, "on_change")
    tell_round = None if on_round is None else ErrorsLogged(on_round, "on_round")
    told_of: Told = (lambda uri, status: None) if tell_all is None else (lambda uri, status: tell_all(report()))
    rounds = Rounds(
        served, chosen, served[0].clock,
        interval_ms=max(1, round(interval_s * 1000)), is_stopped=ends.is_set, tell=told_of,
    )  # fmt: skip
    while not ends.is_set():
        rounds.round()
        if tell_round is not None:
            tell_round(report())
        if once or ends.wait(interval_s):
            break
    return report()


def _check_course(interval_s: float, stop: object, told: Mapping[str, object]) -> None:
    """Raises: Invalid for what cannot say how a run goes."""
    is_number = isinstance(interval_s, int | float) and not isinstance(interval_s, bool)
    if not is_number or not 0 < interval_s <= INTERVAL_MAX_S:
        raise Invalid(
            f"interval_s={interval_s!r}: expected a number of seconds above 0, and at most {INTERVAL_MAX_S:,} (a year)"
        )
    if stop is not None and not (callable(getattr(stop, "is_set", None)) and callable(getattr(stop, "wait", None))):
        raise Invalid(f"stop={stop!r}: expected a threading.Event, or what acts like one, found {type(stop).__name__}")
    for name, call in told.items():
        if call is not None and not callable(call):
            raise Invalid(f"{name}={call!r}: expected a function, found {type(call).__name__}")


def _services(given: Iterable[str] | None) -> tuple[Service, ...]:
    if given is None:
        return ()
    names, known = several_texts(given, what="services", of="names"), [one.value for one in Service]
    if unknown := [name for name in names if name not in known]:
        raise Invalid(f"services: expected some of {', '.join(known)}; found {unknown[0]!r}")
    return tuple(Service(name) for name in names)


def _opened(tables: TableLike | Iterable[TableLike], storage_options: Mapping[str, str] | None) -> "list[HudiTable]":
    given: list[TableLike] = []
    if isinstance(tables, (HudiTable, str, os.PathLike)):
        given = [tables]
    elif isinstance(tables, Iterable):
        given = list(tables)
    if not given:
        raise Invalid(f"tables={tables!r}: expected a table or a path, or several of them")
    return [t if isinstance(t, HudiTable) else HudiTable.open(t, storage_options=storage_options) for t in given]


class _Served:
    """A table that is looked after."""

    def __init__(
        self,
        table: HudiTable,
        named: tuple[Service, ...],
        options: Mapping[str, object] | None,
        spark: "SparkSession | None",
    ) -> None:
        self._handle: TableHandle = table._handle
        self._named, self._options, self._spark = named, options, spark
        self.clock = self._handle.access.clock
        self.uri = hide_secrets(self._handle.access.location.uri)

    def check_options(self) -> None:
        """Raises: Invalid, Unsupported for options that no service of the table takes, and for what is no session."""
        self._handle.access_through(self._spark)
        _, merged, _ = self._handle.prepare(self._options)
        AfterCommitSettings.from_options(merged)

    def found(self, services: Collection[Service]) -> tuple[ServiceStatus, ...]:
        """What a dry run says."""
        verdicts = self.due(services)
        now_ms = self._handle.access.clock.now_ms()
        return tuple(
            ServiceStatus(one.service, State.DUE if one.is_due else State.IDLE, one.reason, now_ms) for one in verdicts
        )

    def due(self, services: Collection[Service]) -> Iterator[Due]:
        snapshot, merged, settings = self._handle.prepare(self._options)
        access = self._handle.access
        if is_listening():
            pending = pending_services(snapshot.timeline, now_ms=access.clock.now_ms(), zone=snapshot.zone)
            tell(Backlog(self.uri, pending))

        life = LifeTerms(access.guard, access.clock.now_ms(), settings.heartbeat.expires_ms)
        look = Look(
            snapshot=snapshot, settings=AfterCommitSettings.from_options(merged), wanted=self._named,
            base_files=base_file_settings(settings), bucket_options=settings.bucket_options,
            new_uuid=access.new_uuid, life=life,
        )  # fmt: skip
        return find_due(look, services)

    def carry_out(self, service: Service) -> Served:
        result = self._handle.told(_TOLD_AS.get(service, service.value), lambda: self._run(service))
        if isinstance(result, tuple):  # of rollbacks, which state no reason, or index builds
            if not result:
                return Served(None, "nothing was left to do")
            return Served(result[-1].requested, getattr(result[-1], "reason", ""))
        reason: str = result.reason
        if reason and (given_up := getattr(result, "given_up", ())):
            reason = f"{', '.join(given_up)} was given up, as its file groups have changed; {reason}"
        return Served(getattr(result, "requested", None), reason)  # an archival has no instant

    def _run(self, service: Service) -> Any:
        """The result of the calls of the same name."""
        handle, access = self._handle, self._handle.access_through(self._spark)
        _, merged, settings = handle.prepare(self._options)
        after = AfterCommitSettings.from_options(merged)
        work = slice_work(handle, access, frames.as_cluster(self._spark))

        match service:
            case Service.FAILED_WRITES:
                with clean_job(handle, access, settings, after.clean).open_session() as session:
                    return tuple(session.rolled_back)
            case Service.COMPACTION | Service.LOG_COMPACTION:
                kind = CompactionKind.BASE if service is Service.COMPACTION else CompactionKind.LOG
                job = compaction_job(handle, kind, access, settings, after, work)
                return run_compactions(job, is_asked=False, plans=plans_new(service, after, self._named))
            case Service.CLUSTERING:
                own = clustering_job(handle, access, settings, after, work)
                return run_clusterings(own, is_asked=False, plans=plans_new(service, after, self._named))
            case Service.INDEXING:
                return indexes.run_planned(handle, self._options, self._spark)
            case Service.EXPIRY:
                return writes.expire_partitions(handle, self._options, dry_run=False)
            case Service.CLEAN:
                return run_cleans(clean_job(handle, handle.access, settings, after.clean), is_asked=False)
            case Service.ARCHIVE:
                open_session = partial(handle.session, settings, after.archive.clean, "archive")
                return run_archive(open_session, after.archive, handle.access.clock)
