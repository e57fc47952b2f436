"""What is due on a table, and why the rest is not. Nothing is changed, and the table is not held."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from pyhudi.errors import HudiError, Unsupported
from pyhudi.format.timeline.instant import Instant
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.archive.run import plan_of_archival
from pyhudi.services.clean.planning import plan_clean
from pyhudi.services.clean.settings import FAILED_WRITES, FailedWrites
from pyhudi.services.clustering import inputs as clustering
from pyhudi.services.clustering.resizing import rings_of_table
from pyhudi.services.clustering.trigger import pending_clusterings
from pyhudi.services.compaction import inputs as compaction
from pyhudi.services.compaction.inputs import CompactionKind
from pyhudi.services.expiry.plan import plan_expiry
from pyhudi.services.indexing.plans import find_pending_indexings
from pyhudi.services.indexing.run import why_not_run
from pyhudi.table.view.cleaned import planned_names
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.write.handles.base_file_writer import BaseFileSettings


class Service(StrEnum):
    """What a service process looks after, in the order of a round."""

    FAILED_WRITES = "failed_writes"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log_compaction"
    CLUSTERING = "clustering"
    INDEXING = "indexing"
    EXPIRY = "expiry"
    CLEAN = "clean"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a service has something to do on a table. `reason`: why it has, or why it has not, in words."""

    service: Service
    is_due: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A table as it is now, and by what its services go.

    `wanted`: services that the caller asked for by name; others run where the settings have them on. `life`: tells the
    actions that are being run from those that died. `new_uuid`: names what a plan would make.
    """

    snapshot: Snapshot
    settings: AfterCommitSettings
    base_files: BaseFileSettings
    bucket_options: Mapping[str, str]
    new_uuid: Callable[[], str]
    wanted: Collection[Service]
    life: LifeTerms

    @property
    def now_ms(self) -> int:
        return self.life.now_ms

    def why_off(self, service: Service) -> str:
        """Why a service plans nothing new, for people; empty if it does."""
        if plans_new(service, self.settings, self.wanted):
            return ""
        return f"{_SWITCHES[service][0]} is off, and the service was not asked for by name"

    def pending(self, *actions: str) -> list[Instant]:
        return [instant for instant in self.snapshot.timeline.pending if instant.action in actions]

    def is_alive(self, instant: Instant) -> bool:
        return self.life.living(self.snapshot.storage, instant.requested) is not None


def plans_new(service: Service, settings: AfterCommitSettings, wanted: Collection[Service]) -> bool:
    """Whether a service may plan something new. Otherwise it finishes what is pending only."""
    return service in wanted or service not in _SWITCHES or _SWITCHES[service][1](settings)


def find_due(look: Look, services: Collection[Service]) -> Iterator[Due]:
    """What is due of these services, in the order of a round. Each is judged when it is asked for.

    A service is due whose plan has something in it. Requests: a get and a head for each pending action; what planning
    takes where nothing is pending.
    """
    return map(partial(_judge, look), (service for service in Service if service in services))


def _judge(look: Look, service: Service) -> Due:
    """The verdict on one service. One that does not fit the table is not due for that reason.

    One that cannot be planned is due: whoever carries it out meets the error, and tells it.
    """
    try:
        return _JUDGES[service](look)
    except Unsupported as error:
        return Due(service, False, str(error))
    except HudiError as error:
        return Due(service, True, f"cannot be planned: {error}")


def _left(look: Look, service: Service, pending: list[Instant]) -> Due | None:
    """The verdict where something is pending already; None where nothing is."""
    if not pending:
        return None
    first = pending[0]
    if look.is_alive(first):
        return Due(service, False, f"{first.action} '{first.requested}' is being carried out")
    return Due(service, True, f"{first.action} '{first.requested}' is pending")


def _new(service: Service, why_not: str, why: str) -> Due:
    return Due(service, not why_not, why_not or why)


def _failed_writes(look: Look) -> Due:
    service = Service.FAILED_WRITES
    writes = compaction.running_writes(look.snapshot)
    dead = [one for one in writes if not look.is_alive(one)]
    if not dead:
        running = f"{len(writes):,} are running" if writes else "none is pending"
        return Due(service, False, f"no write has failed: {running}")
    if look.settings.clean.failed_writes is FailedWrites.NEVER:
        return Due(service, False, f"write '{dead[0].requested}' has failed, and {FAILED_WRITES} is NEVER")
    return Due(service, True, f"write '{dead[0].requested}' has failed")


def _compaction(look: Look) -> Due:
    return _compaction_of(look, Service.COMPACTION, CompactionKind.BASE, "compaction")


def _log_compaction(look: Look) -> Due:
    return _compaction_of(look, Service.LOG_COMPACTION, CompactionKind.LOG, "log compaction")


def _compaction_of(look: Look, service: Service, kind: CompactionKind, what: str) -> Due:
    if not _has_logs(look.snapshot):
        return Due(service, False, _NO_LOGS)
    if left := _left(look, service, look.pending(kind.value)):
        return left
    if why_not := look.why_off(service):
        return Due(service, False, why_not)

    plan = compaction.new_plan(
        look.snapshot, kind, look.settings.compaction, look.base_files,
        running=_in_the_way(look), now_ms=look.now_ms, is_asked=False,
    )  # fmt: skip
    return _new(service, plan if isinstance(plan, str) else "", f"enough delta commits since the last {what}")


def _in_the_way(look: Look) -> list[Instant]:
    """The writes that will still be pending when a compaction is planned: those that died are then undone, or not."""
    writes = compaction.running_writes(look.snapshot)
    undoes_dead = look.settings.clean.failed_writes is FailedWrites.EAGER
    return [one for one in writes if look.is_alive(one)] if undoes_dead else writes


def _clustering(look: Look) -> Due:
    service, settings = Service.CLUSTERING, look.settings.clustering
    rings = rings_of_table(look.snapshot, look.bucket_options, settings)
    if left := _left(look, service, pending_clusterings(look.snapshot)):
        return left
    if why_not := look.why_off(service):
        return Due(service, False, why_not)

    plan = clustering.new_plan(
        look.snapshot, settings, look.base_files, partitions=None, rings=rings,
        now_ms=look.now_ms, new_uuid=look.new_uuid, is_asked=False,
    )  # fmt: skip
    return _new(service, plan if isinstance(plan, str) else "", "enough commits since the last clustering")


def _indexing(look: Look) -> Due:
    service = Service.INDEXING
    why_not = "no indexing is pending"
    for pending in find_pending_indexings(look.snapshot, look.life):
        why_not = why_not_run(look.snapshot, pending)
        if not why_not:
            return Due(service, True, f"indexing '{pending.instant.requested}' is pending")
    return Due(service, False, why_not)


def _expiry(look: Look) -> Due:
    service = Service.EXPIRY
    plan = plan_expiry(look.snapshot, look.settings.expiry, now_ms=look.now_ms)
    return _new(service, plan.reason, f"{len(plan.expired):,} partitions have expired")


def _clean(look: Look) -> Due:
    service, settings = Service.CLEAN, look.settings.clean
    if why_not := look.why_off(service):
        return Due(service, False, why_not)
    if left := _left(look, service, look.pending("clean")):
        return left

    plan = plan_clean(look.snapshot, settings, now_ms=look.now_ms, is_asked=False)
    if isinstance(plan, str):
        return Due(service, False, plan)
    return Due(service, True, f"{sum(map(len, planned_names(plan).values())):,} files are superfluous")


def _archive(look: Look) -> Due:
    service, settings = Service.ARCHIVE, look.settings.archive
    if why_not := look.why_off(service):
        return Due(service, False, why_not)
    plan = plan_of_archival(look.snapshot, settings, now_ms=look.now_ms)
    return _new(service, "" if plan.instants else plan.reason, f"{len(plan.instants):,} instants may be archived")


def _has_logs(snapshot: Snapshot) -> bool:
    return snapshot.config.table_type == "MERGE_ON_READ"


_NO_LOGS = "a copy-on-write table has no logs"

_SWITCHES: Mapping[Service, tuple[str, Callable[[AfterCommitSettings], bool]]] = {
    Service.LOG_COMPACTION: ("hoodie.log.compaction.enable", lambda s: s.compaction.logs_enabled),
    Service.CLUSTERING: (
        "hoodie.clustering.inline",
        lambda s: s.clustering.is_inline or s.clustering.is_scheduled_inline,
    ),
    Service.CLEAN: ("hoodie.clean.automatic", lambda s: s.clean.is_automatic),
    Service.ARCHIVE: ("hoodie.archive.automatic", lambda s: s.archive.is_automatic),
}
"""What has those services on that are not always on: the option, and what the settings say."""

_JUDGES: Mapping[Service, Callable[[Look], Due]] = {
    Service.FAILED_WRITES: _failed_writes,
    Service.COMPACTION: _compaction,
    Service.LOG_COMPACTION: _log_compaction,
    Service.CLUSTERING: _clustering,
    Service.INDEXING: _indexing,
    Service.EXPIRY: _expiry,
    Service.CLEAN: _clean,
    Service.ARCHIVE: _archive,
}
