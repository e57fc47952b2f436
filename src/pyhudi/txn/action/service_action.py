"""The life of a pending service that runs without the guard.

A service holds the guard only when it begins and when it completes; other writers write meanwhile. While it runs, its
heartbeat says so, and a free guard does not mean that the service is dead. Whoever finds a service pending without a
living heartbeat does it anew, under the same instant. Two attempts never write the same file: each uses file names of
its own. An attempt that was given up finds its markers gone (`write/handles/attempt.py`), at the latest when it
completes.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from pyhudi.errors import Conflict, OutcomeUnknown, Unavailable
from pyhudi.format.names import BaseFileName, LogFileName, heartbeat_path
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import WriteStat
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.pending import CLUSTERINGS, FileGroup
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.markers import remove_markers
from pyhudi.txn.action.run import ActionRun
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.locks.heartbeat import beating, remove_heartbeat, runner
from pyhudi.txn.locks.running import is_surely_dead, running
from pyhudi.txn.undo.leftovers import sweep_leftovers

log = logging.getLogger("pyhudi")

OpenSession = Callable[[], AbstractContextManager[WriteSession]]

TURN_WAIT_MS = 600_000
"""How long a service whose work is done waits for a table that another writer holds, before the work is given up."""
_PAUSE_MS = 250


def begin_attempt(session: WriteSession, instant: Instant, groups: Collection[FileGroup]) -> ActionRun:
    """Make a pending service ours: remove what an earlier attempt left, then put the service inflight.

    `groups`: the file groups in the service's plan; only there can an earlier attempt have left files, or in their
    partitions if the service makes new file groups. The caller starts the heartbeat before the session ends. Order of
    removal: heartbeat, markers, files. A task of the earlier attempt that still runs then misses its marker and deletes
    its own file.

    Raises: Conflict while another process runs the service, as its heartbeat says.
    """
    access, requested = session.access, instant.requested
    now_ms, storage = access.clock.now_ms(), access.storage
    refuse_running(session, instant)

    if instant.state == "INFLIGHT":
        log.info("%s '%s' was begun before and is done anew", instant.action, requested)
        session.hold.confirm()
        remove_heartbeat(storage, requested)
        remove_markers(storage, requested)
        storage.delete_many(_own_files(storage, instant, groups))
        sweep_leftovers(
            storage, session.snapshot.config, {partition for partition, _ in groups},
            now_ms=now_ms, heartbeat_expires_ms=session.heartbeat.expires_ms,
        )  # fmt: skip

    return session.table.begin(requested, instant.action, upon=session.state)


def claim(session: WriteSession, requested: str, *, life: ExitStack) -> None:
    """Take the lock that tells others at once when this process dies, until `life` ends.

    A new service takes it before its plan is put, so that its plan is never seen without it.
    """
    life.enter_context(running(session.access.guard, requested))


def show_life(session: WriteSession, requested: str, life: ExitStack) -> None:
    """Give signs of life for a service until `life` ends: a heartbeat and, where the guard knows processes, a lock."""
    claim(session, requested, life=life)
    life.enter_context(beating(session.access.storage, requested, interval_ms=session.heartbeat.interval_ms))


def refuse_running(session: WriteSession, instant: Instant) -> None:
    """Refuse a pending service that somebody runs. At most two requests, and one more for the error.

    A recent heartbeat means that the service runs, unless the guard knows that its process has ended.
    Raises: Conflict while another process, or another thread of this one, runs the service.
    """
    now_ms, expires_ms = session.access.clock.now_ms(), session.heartbeat.expires_ms
    if is_surely_dead(session.access.guard, session.access.storage, instant.requested):
        return

    beat = session.access.storage.head(heartbeat_path(instant.requested))
    if beat is not None and now_ms - beat.modified_ms <= expires_ms:
        who = runner(session.access.storage, instant.requested)
        raise Conflict(
            f"{instant.action} '{instant.requested}': {who} runs it (its heartbeat is {now_ms - beat.modified_ms:,} ms "
            f"old); wait for it to end or, if it died, for {expires_ms:,} ms"
        )


@contextmanager
def awaited_session(open_session: OpenSession, clock: Clock, *, what: str) -> Iterator[WriteSession]:
    """Open a session as soon as no other writer holds the table. `what`: the waiting service, for the error.

    Raises: Conflict when the wait takes longer than `TURN_WAIT_MS`.
    """
    until_ms = clock.now_ms() + TURN_WAIT_MS
    with ExitStack() as stack:
        while True:
            try:
                session = stack.enter_context(open_session())
                break
            except Conflict as error:
                if clock.now_ms() >= until_ms:
                    raise Conflict(
                        f"{what}: waited {TURN_WAIT_MS // 1_000:,} seconds for the table; it stays pending, and its "
                        f"next run does it anew: {error}"
                    ) from error
                clock.sleep_ms(_PAUSE_MS)
        yield session


def _own_files(storage: Storage, instant: Instant, groups: Collection[FileGroup]) -> list[str]:
    """The paths of the files that attempts at a service have written. One list request per partition.

    A compaction writes base files, a log compaction log files, and a clustering base files of new file groups.
    """
    found = []
    for partition in sorted({partition for partition, _ in groups}):
        for file in storage.list(partition):
            text = file.path.rpartition("/")[2]
            if instant.action == "logcompaction":
                logged = LogFileName.parse(text)
                key = (logged.file_id, logged.instant) if logged else None
            else:
                base = BaseFileName.parse(text)
                key = (base.file_id, base.requested) if base else None

            if key is None or key[1] != instant.requested:
                continue
            if instant.action in CLUSTERINGS or (partition, key[0]) in groups:
                found.append(file.path)
    return found


@contextmanager
def given_back_on_failure(run: ActionRun, life: ExitStack) -> Iterator[None]:
    """Let go of a service if the block raises an Exception, so that the next run can begin it anew at once.

    The service stays pending, and its heartbeat is removed. Nothing is touched after a Conflict, since another process
    may run the service by now, nor after OutcomeUnknown, since it may have landed.
    """
    try:
        yield
    except (Conflict, OutcomeUnknown):
        raise
    except Exception:
        life.close()
        with suppress(Unavailable):
            remove_heartbeat(run.table.storage, run.requested)
        raise


def stats_by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    """The statements of files as a commit holds them, in one order whatever the order of the tasks was."""
    found: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda s: (s.partition_path or "", s.file_id or "")):
        found.setdefault(stat.partition_path or "", []).append(stat)
    return {partition: tuple(of_one) for partition, of_one in found.items()}
