"""`ZookeeperBasedLockProvider` and `ZookeeperBasedImplicitBasePathLockProvider`: a queue of nodes in ZooKeeper.

Spec: the recipe of Curator's `InterProcessMutex`, which Apache Hudi takes. A writer creates an ephemeral sequential
node `_c_<uuid>-lock-<number>` below `<base_path>/<lock_key>`. The node with the lowest number holds the lock. The
others wait, each for the node before its own. A node ends with the session of its writer.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, NodeExistsError, NoNodeError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from pyhudi.errors import Conflict, Invalid, LockLost, Unavailable
from pyhudi.storage.protocol import StorageLocation
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import TEXT_BYTES_MAX, Hold, Holder, tell_holder
from pyhudi.txn.locks.providers.implicit import path_key
from pyhudi.txn.locks.providers.protocol import Deadline, log
from pyhudi.txn.locks.providers.settings import LockSettings, ProviderName

_MARK = "-lock-"
_ERRORS = (KazooException, KazooTimeoutError, OSError)
_ANSWER_WITHIN_S = 10
_TRIES = 5


class ZookeeperLock:
    """The lock at `path` on the servers `hosts`, which is `host:port,host:port`."""

    def __init__(
        self,
        hosts: str,
        path: str,
        *,
        table: str,
        session_ms: int,
        connection_ms: int,
        settings: LockSettings,
        clock: Clock,
        new_uuid: Callable[[], str],
    ) -> None:
        self._hosts, self._path, self._table = hosts, path, table
        self._session_ms, self._connection_ms = session_ms, connection_ms
        self._settings, self._clock, self._new_uuid = settings, clock, new_uuid

    @classmethod
    def open(
        cls, location: StorageLocation, settings: LockSettings, clock: Clock, new_uuid: Callable[[], str]
    ) -> "ZookeeperLock":
        if settings.provider is ProviderName.ZOOKEEPER_IMPLICIT:
            base, key = f"/tmp/{path_key(location.uri)}", "lock_key"
        else:
            base = settings.needed("hoodie.write.lock.zookeeper.base_path")
            key = settings.needed("hoodie.write.lock.zookeeper.lock_key", settings.table_name)
        path = "/" + "/".join(part for part in f"{base}/{key}".split("/") if part)
        if any(part in (".", "..") for part in path.split("/")) or "\x00" in path:
            raise Invalid(f"lock of {location.uri}: expected a path of ZooKeeper, found '{path}'")
        return cls(
            settings.needed("hoodie.write.lock.zookeeper.url"),
            path,
            table=location.uri,
            session_ms=settings.values.count("hoodie.write.lock.zookeeper.session_timeout_ms", 60_000),
            connection_ms=settings.values.count("hoodie.write.lock.zookeeper.connection_timeout_ms", 15_000),
            settings=settings,
            clock=clock,
            new_uuid=new_uuid,
        )

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        pid = os.getpid()
        client = self._connect()
        try:
            hold = self._take(
                client, Holder.this_process(purpose, now), Deadline(self._clock, wait_ms, self._settings.pauses)
            )
            try:
                yield hold
            finally:
                if os.getpid() == pid:
                    self._release(client, hold.node)
        finally:
            if os.getpid() == pid:  # the session of a forked child's parent stays
                _close(client)

    def _connect(self) -> KazooClient:
        retry = KazooRetry(max_tries=self._settings.request_tries, delay=0.1, max_delay=2)
        client = KazooClient(
            hosts=self._hosts, timeout=self._session_ms / 1000, connection_retry=KazooRetry(max_tries=-1, max_delay=2),
            command_retry=retry, logger=log.getChild("zookeeper"),
        )  # fmt: skip
        try:
            client.start(timeout=self._connection_ms / 1000)
        except _ERRORS as error:
            _close(client)
            raise self._unavailable(error) from error
        return client

    def _take(self, client: KazooClient, holder: Holder, deadline: Deadline) -> "ZookeeperHold":
        node = ""
        name = f"_c_{self._new_uuid()}{_MARK}"
        try:
            node = self._create(client, name, str(holder).encode()[:TEXT_BYTES_MAX])
            while (before := self._node_before(client, node)) is not None:
                if not deadline.left_ms:
                    raise self._conflict(client)
                self._await_end(client, before, deadline)
            return ZookeeperHold(client, f"{self._path}/{node}", self._table)
        except _ERRORS as error:
            self._release(client, f"{self._path}/{node}" if node else "")
            raise self._unavailable(error) from error
        except BaseException:
            self._release(client, f"{self._path}/{node}" if node else "")
            raise

    def _create(self, client: KazooClient, name: str, data: bytes) -> str:
        """Put our node at the end of the queue. An unanswered try may have put it: then it bears our unique name."""
        for left in reversed(range(_TRIES)):
            try:
                client.ensure_path(self._path)
                made = client.create(f"{self._path}/{name}", data, ephemeral=True, sequence=True)
                return str(made).rpartition("/")[2]
            except NoNodeError:  # the folder was empty, and went in between
                if not left:
                    raise
            except (ConnectionLoss, NodeExistsError):
                ours = [node for node in self._queue(client) if node.startswith(name)]
                if ours:
                    return ours[0]
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _queue(self, client: KazooClient) -> list[str]:
        """The nodes in the order in which they hold the lock."""
        nodes = client.retry(client.get_children, self._path)
        return sorted((node for node in nodes if _MARK in node), key=lambda node: node.rpartition(_MARK)[2])

    def _node_before(self, client: KazooClient, node: str) -> str | None:
        """The node that ours waits for; None when ours holds the lock."""
        queue = self._queue(client)
        if node not in queue:
            raise SessionExpiredError("our node went with its session while it waited")
        at = queue.index(node)
        return queue[at - 1] if at else None

    def _await_end(self, client: KazooClient, node: str, deadline: Deadline) -> None:
        """Wait until a node is gone, its watch says that something changed, or a pause is over."""
        changed = threading.Event()
        if client.retry(client.exists, f"{self._path}/{node}", watch=lambda event: changed.set()) is None:
            return
        pause_ms = min(deadline.left_ms, 1_000)
        if not changed.wait(pause_ms / 1000):
            deadline.spent_ms += pause_ms

    def _conflict(self, client: KazooClient) -> Conflict:
        holder = "another writer"
        for node in self._queue(client)[:1]:
            with suppress(NoNodeError):
                # Curator's nodes hold the address of their writer.
                holder = client.retry(client.get, f"{self._path}/{node}")[0].decode(errors="replace")[:200] or holder
        return Conflict(
            f"{self._table}: expected no other writer, found the lock {self._path} of ZooKeeper held by "
            f"{tell_holder(holder)}; wait for it to end, then retry from the new snapshot"
        )

    def _release(self, client: KazooClient, path: str) -> None:
        """Take our node away. A failure does not fail the write: the node goes with its session, which ends next."""
        if not path:
            return
        try:
            client.retry(client.delete, path)
        except NoNodeError:
            pass
        except _ERRORS as error:
            log.warning("%s: %s goes when its session ends: %s", self._table, path, error)

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"{self._table}: ZooKeeper at {self._hosts} does not answer: {type(error).__name__} {error}; nothing was "
            "changed: try again"
        )


@dataclass(frozen=True)
class ZookeeperHold:
    """Our node, the first of its queue. Its place does not change as long as it is there."""

    client: KazooClient
    node: str
    table: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pid", os.getpid())

    def confirm(self) -> None:
        """Ask the servers' leader for our node. Raises: LockLost when it is gone, or nobody answers."""
        if os.getpid() != self.__dict__["_pid"]:
            raise LockLost(f"{self.table}: the lock is held by the process that was forked, not by this one")
        try:
            self.client.sync_async(self.node).get(timeout=_ANSWER_WITHIN_S)
            found = self.client.exists_async(self.node).get(timeout=_ANSWER_WITHIN_S)
        except _ERRORS as error:
            raise LockLost(
                f"{self.table}: ZooKeeper does not say that the lock is still ours: {type(error).__name__} {error}; "
                "nothing was committed: retry from the new snapshot"
            ) from error
        if found is None or self.client.client_id is None or found.ephemeralOwner != self.client.client_id[0]:
            raise LockLost(
                f"{self.table}: the session at ZooKeeper ended, and the lock with it; nothing was committed: retry "
                "from the new snapshot; a longer hoodie.write.lock.zookeeper.session_timeout_ms helps if this recurs"
            )


def _close(client: KazooClient) -> None:
    with suppress(*_ERRORS):
        client.stop()
        client.close()
