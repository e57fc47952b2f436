"""A pending service that runs without the guard: its turn begins and ends under it, and others write meanwhile.

While it runs, its heartbeat says so; the guard's being free says nothing of it. Whoever finds it pending without a
living heartbeat does it anew, under the same instant. Attempts never meet in a file: each has names of its own, and
one that was given up finds its markers gone (`write/attempt.py`), at the latest when it is to complete.
"""

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from pyhudi.errors import Conflict
from pyhudi.format.names import BaseFileName, LogFileName, heartbeat_path
from pyhudi.model.instant import Instant
from pyhudi.storage.protocol import Storage
from pyhudi.table.pending import FileGroup
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.run import ActionRun
from pyhudi.txn.guard import is_surely_dead, running
from pyhudi.txn.heartbeat import beating, remove_heartbeat
from pyhudi.txn.markers import remove_markers
from pyhudi.txn.session import WriteSession
from pyhudi.txn.undo.leftovers import sweep_leftovers

log = logging.getLogger("pyhudi")

OpenSession = Callable[[], AbstractContextManager[WriteSession]]

TURN_WAIT_MS = 600_000
"""How long work that is done waits for the table, which another writer holds, before it is given up."""
_PAUSE_MS = 250


def begin_attempt(session: WriteSession, instant: Instant, groups: Collection[FileGroup]) -> ActionRun:
    """Make a pending service ours: what an earlier attempt left is removed, then it stands inflight.

    `groups`: those in its plan, in which alone it may have left files. The caller starts the heartbeat before the
    session ends. Order: heartbeat, markers, files, so that a task of the earlier attempt takes its own file back.

    Raises: Conflict while another process runs it, by its heartbeat.
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


def show_life(session: WriteSession, requested: str, life: ExitStack) -> None:
    """Give signs of life for a service until `life` ends: by its process, where the guard can tell, and a heartbeat."""
    life.enter_context(running(session.access.guard, requested))
    life.enter_context(beating(session.access.storage, requested, interval_ms=session.heartbeat.interval_ms))


def refuse_running(session: WriteSession, instant: Instant) -> None:
    """Raises: Conflict while another process runs a pending service.

    Its heartbeat says so, unless the guard knows that its process has ended. One request.
    """
    now_ms, expires_ms = session.access.clock.now_ms(), session.heartbeat.expires_ms
    if is_surely_dead(session.access.guard, instant.requested):
        return
    beat = session.access.storage.head(heartbeat_path(instant.requested))
    if beat is not None and now_ms - beat.modified_ms <= expires_ms:
        raise Conflict(
            f"{instant.action} '{instant.requested}': another process runs it (its heartbeat is "
            f"{now_ms - beat.modified_ms:,} ms old); wait for it to end or, if it died, for {expires_ms:,} ms"
        )


@contextmanager
def awaited_session(open_session: OpenSession, clock: Clock, *, what: str) -> Iterator[WriteSession]:
    """A session as soon as no other writer holds the table.

    Raises: Conflict when that takes longer than `TURN_WAIT_MS`.
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
                        f"{what}: waited {TURN_WAIT_MS // 1_000:,} seconds for the table, which another writer holds; "
                        "it stays pending, and its next run does it anew"
                    ) from error
                clock.sleep_ms(_PAUSE_MS)
        yield session


def _own_files(storage: Storage, instant: Instant, groups: Collection[FileGroup]) -> list[str]:
    """The files that attempts at a service have written: base files of a compaction, logs of a log compaction.
    One list request a partition.
    """
    found = []
    for partition in sorted({partition for partition, _ in groups}):
        for file in storage.list(partition):
            text = file.path.rpartition("/")[2]
            if instant.action == "compaction":
                base = BaseFileName.parse(text)
                key = (base.file_id, base.requested) if base else None
            else:
                logged = LogFileName.parse(text)
                key = (logged.file_id, logged.instant) if logged else None
            if key is not None and key[1] == instant.requested and (partition, key[0]) in groups:
                found.append(file.path)
    return found
