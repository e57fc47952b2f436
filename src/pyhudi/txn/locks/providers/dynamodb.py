"""`DynamoDBBasedLockProvider` and `DynamoDBBasedImplicitPartitionKeyLockProvider`: an item in a table of DynamoDB.

Spec: the item of AWS's lock client for Java (`com.amazonaws.services.dynamodbv2`), which Apache Hudi takes:

    key                  S   the lock
    ownerName            S   who holds it
    leaseDuration        S   milliseconds
    recordVersionNumber  S   new with every renewal
    isReleased           S   "1" in an item that its holder left without deleting it

A holder renews the item's version. Whoever sees one version for as long as its lease, by the own clock, takes the lock
over. So no clock is compared with another's.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from pyhudi.errors import Conflict, HudiError, Invalid, LockLost, Unavailable
from pyhudi.storage.protocol import StorageLocation
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import Hold, Holder, tell_holder
from pyhudi.txn.locks.providers.implicit import path_key
from pyhudi.txn.locks.providers.protocol import Deadline, log, renewed
from pyhudi.txn.locks.providers.settings import LockSettings, ProviderName

_KEY, _OWNER, _LEASE, _VERSION, _RELEASED = "key", "ownerName", "leaseDuration", "recordVersionNumber", "isReleased"
_NAMES = {"#k": _KEY, "#v": _VERSION, "#o": _OWNER}
_LEASE_MS_DEFAULT = 60_000
_CREATION_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class LockTable:
    """A table of DynamoDB for locks, and how it is made where there is none."""

    name: str
    billing_mode: str
    read_capacity: int
    write_capacity: int
    creation_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Item:
    """What is stored for a lock."""

    owner: str
    version: str
    lease_ms: int
    is_released: bool


class DynamodbLock:
    """The lock `key` in a table of DynamoDB. `connect`: gives the client; it is called when the lock is first taken."""

    def __init__(
        self,
        connect: Callable[[], Any],
        lock_table: LockTable,
        key: str,
        *,
        table: str,
        settings: LockSettings,
        clock: Clock,
        new_uuid: Callable[[], str],
    ) -> None:
        self._connect, self._lock_table, self._key, self._table = connect, lock_table, key, table
        self._settings, self._clock, self._new_uuid = settings, clock, new_uuid
        self._lease_ms = settings.wait_ms or _LEASE_MS_DEFAULT

    @classmethod
    def open(
        cls, location: StorageLocation, settings: LockSettings, clock: Clock, new_uuid: Callable[[], str]
    ) -> "DynamodbLock":
        o = settings.values
        region = settings.text("hoodie.write.lock.dynamodb.region", os.environ.get("AWS_REGION", "us-east-1"))
        endpoint = settings.text("hoodie.write.lock.dynamodb.endpoint_url")
        if endpoint and not endpoint.startswith(("http://", "https://")):
            endpoint = f"https://{endpoint}"
        if settings.provider is ProviderName.DYNAMODB_IMPLICIT:
            key = path_key(location.uri)
        else:
            key = settings.needed("hoodie.write.lock.dynamodb.partition_key", settings.table_name)

        lock_table = LockTable(
            settings.needed("hoodie.write.lock.dynamodb.table"),
            o.choice("hoodie.write.lock.dynamodb.billing_mode", "PAY_PER_REQUEST", ("PAY_PER_REQUEST", "PROVISIONED")),
            o.count("hoodie.write.lock.dynamodb.read_capacity", 20),
            o.count("hoodie.write.lock.dynamodb.write_capacity", 10),
            o.count("hoodie.write.lock.dynamodb.table_creation_timeout", 600_000),
        )

        def connect() -> Any:
            tries = {"total_max_attempts": settings.request_tries + 1, "mode": "standard"}
            config = Config(connect_timeout=10, read_timeout=10, retries=tries)
            return boto3.session.Session().client(
                "dynamodb", region_name=region, endpoint_url=endpoint or None, config=config
            )

        return cls(
            connect, lock_table, key, table=location.uri, settings=settings, clock=clock, new_uuid=new_uuid
        )  # fmt: skip

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        owner = f"{Holder.this_process(purpose, now)} {self._new_uuid()}"
        with self._errors():
            items = Items(self._connect(), self._lock_table.name, self._key)
            version = self._take(items, owner, Deadline(self._clock, wait_ms, self._settings.pauses))

        lease = DynamodbLease(items, self._table, owner, version, self._lease_ms, self._clock, self._new_uuid)
        try:
            with renewed(lease.renew, every_ms=max(1, self._lease_ms // 3), what=f"{self._table}: the lock"):
                yield lease
        finally:
            lease.release()

    def _take(self, items: "Items", owner: str, deadline: Deadline) -> str:
        """Put our item as soon as the lock is free. Returns the item's version."""
        seen, seen_ms, is_extended = "", 0, False
        while True:
            found = self._find(items)
            if found is None or found.is_released or (found.version == seen and self._age(seen_ms) > found.lease_ms):
                if found is not None and not found.is_released:
                    log.warning("%s: lock '%s' taken over from %s", self._table, self._key, found.owner)
                version = self._new_uuid()
                if items.put(Item(owner, version, self._lease_ms, False), found):
                    return version
                continue

            if found.version != seen:
                seen, seen_ms = found.version, self._clock.now_ms()
            if deadline.wait_ms and not is_extended:
                # Long enough to see whether the holder renews its item; AWS's client waits so, too.
                deadline.extend(found.lease_ms + 1)
                is_extended = True
            if not deadline.left_ms:
                raise Conflict(
                    f"{self._table}: expected no other writer, found lock '{self._key}' of the DynamoDB table "
                    f"'{self._lock_table.name}' held by {tell_holder(found.owner)}, for "
                    f"{found.lease_ms:,} ms after its last renewal; wait for it to end, then retry from the new "
                    "snapshot"
                )
            deadline.pause()

    def _age(self, seen_ms: int) -> int:
        return self._clock.now_ms() - seen_ms

    def _find(self, items: "Items") -> Item | None:
        """The item of the lock; None where there is none. The table is made where there is none."""
        try:
            return items.find()
        except ClientError as error:
            if _code(error) != "ResourceNotFoundException":
                raise
        items.create_table(self._lock_table)

        waited_ms = 0
        while not items.is_active():
            if waited_ms >= self._lock_table.creation_timeout_ms:
                raise Unavailable(
                    f"{self._table}: expected the DynamoDB table '{self._lock_table.name}' within {waited_ms:,} ms of "
                    "its creation; wait until it is there, then retry"
                )
            self._clock.sleep_ms(_CREATION_POLL_MS)
            waited_ms += _CREATION_POLL_MS
        return items.find()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise _hudi_error(self._table, error) from error


class Items:
    """The requests for one lock."""

    def __init__(self, client: Any, lock_table: str, key: str) -> None:
        self._client, self._lock_table, self._key = client, lock_table, {_KEY: {"S": key}}

    def find(self) -> Item | None:
        answer = self._client.get_item(TableName=self._lock_table, Key=self._key, ConsistentRead=True)
        fields = {name: value.get("S", "") for name, value in answer.get("Item", {}).items()}
        if not fields:
            return None
        lease = fields.get(_LEASE, "")
        return Item(
            fields.get(_OWNER, "another writer"),
            fields.get(_VERSION, ""),
            int(lease) if lease.isascii() and lease.isdigit() else _LEASE_MS_DEFAULT,
            fields.get(_RELEASED) == "1",
        )

    def put(self, item: Item, over: Item | None) -> bool:
        """Put an item if the one that is there is still `over`; None: none. Returns whether it was put."""
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#k)"}
        names = {"#k": _KEY}
        if over is not None:
            condition = {
                "ConditionExpression": "attribute_exists(#k) AND #v = :v",
                "ExpressionAttributeValues": {":v": {"S": over.version}},
            }
            names = {"#k": _KEY, "#v": _VERSION}
        stored = {_OWNER: item.owner, _VERSION: item.version, _LEASE: str(item.lease_ms)}
        content = {**self._key, **{name: {"S": text} for name, text in stored.items()}}
        if _was_done(
            lambda: self._client.put_item(
                TableName=self._lock_table, Item=content, ExpressionAttributeNames=names, **condition
            )
        ):
            return True
        # An earlier try of the same request may have landed without an answer.
        found = self.find()
        return found is not None and found.owner == item.owner and found.version == item.version

    def renew(self, item: Item, version: str) -> bool:
        """Give our item a new version. Returns False if another writer has the lock."""
        return _was_done(
            lambda: self._client.update_item(
                TableName=self._lock_table,
                Key=self._key,
                UpdateExpression="SET #l = :l, #v = :n",
                ConditionExpression="attribute_exists(#k) AND #v = :v AND #o = :o",
                ExpressionAttributeNames={**_NAMES, "#l": _LEASE},
                ExpressionAttributeValues={
                    ":l": {"S": str(item.lease_ms)},
                    ":n": {"S": version},
                    ":v": {"S": item.version},
                    ":o": {"S": item.owner},
                },
            )
        )

    def delete(self, item: Item) -> None:
        _was_done(
            lambda: self._client.delete_item(
                TableName=self._lock_table,
                Key=self._key,
                ConditionExpression="attribute_exists(#k) AND #v = :v AND #o = :o",
                ExpressionAttributeNames=_NAMES,
                ExpressionAttributeValues={":v": {"S": item.version}, ":o": {"S": item.owner}},
            )
        )

    def create_table(self, lock_table: LockTable) -> None:
        more: dict[str, Any] = {}
        if lock_table.billing_mode == "PROVISIONED":
            more["ProvisionedThroughput"] = {
                "ReadCapacityUnits": lock_table.read_capacity, "WriteCapacityUnits": lock_table.write_capacity
            }  # fmt: skip
        try:
            self._client.create_table(
                TableName=lock_table.name,
                KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
                BillingMode=lock_table.billing_mode,
                **more,
            )
        except ClientError as error:
            if _code(error) != "ResourceInUseException":  # another writer makes it
                raise

    def is_active(self) -> bool:
        answer = self._client.describe_table(TableName=self._lock_table)
        return bool(answer["Table"]["TableStatus"] == "ACTIVE")


class DynamodbLease:
    """A lock that was taken. A thread renews it, and so does `confirm`."""

    def __init__(
        self,
        items: Items,
        table: str,
        owner: str,
        version: str,
        lease_ms: int,
        clock: Clock,
        new_uuid: Callable[[], str],
    ) -> None:
        self._items, self._table, self._clock, self._new_uuid = items, table, clock, new_uuid
        self._item = Item(owner, version, lease_ms, False)
        self._renewed_ms = clock.now_ms()
        self._pid, self._lost, self._changing = os.getpid(), "", threading.Lock()

    def confirm(self) -> None:
        """Renew the lock. If DynamoDB does not answer, at least half of the lease must be left. Raises: LockLost."""
        if os.getpid() != self._pid:
            raise LockLost(f"{self._table}: the lock is held by the process that was forked, not by this one")
        try:
            self.renew()
        except Unavailable as error:
            left_ms = self._renewed_ms + self._item.lease_ms - self._clock.now_ms()
            if left_ms < self._item.lease_ms // 2:
                raise LockLost(
                    f"{self._table}: the lock could not be renewed and ends in {left_ms:,} ms: expected at least "
                    f"{self._item.lease_ms // 2:,} ms to commit ({error}); nothing was committed: retry"
                ) from error

    def renew(self) -> None:
        """Raises: LockLost when another writer has the lock, from then on; Unavailable when DynamoDB does not say."""
        with self._changing:
            if self._lost:
                raise LockLost(self._lost)
            now_ms, version = self._clock.now_ms(), self._new_uuid()
            try:
                is_ours = self._items.renew(self._item, version) or self._renew_unanswered(version)
            except (BotoCoreError, ClientError) as error:
                raise _hudi_error(self._table, error) from error
            if not is_ours:
                self._lost = (
                    f"{self._table}: our lock was not renewed in time, and another writer took it; nothing was "
                    "committed: retry from the new snapshot"
                )
                raise LockLost(self._lost)
            self._item = Item(self._item.owner, version, self._item.lease_ms, False)
            self._renewed_ms = now_ms

    def _renew_unanswered(self, version: str) -> bool:
        """Whether the item is ours all the same: an earlier renewal landed without an answer."""
        found = self._items.find()
        if found is None or found.owner != self._item.owner:
            return False
        return found.version == version or self._items.renew(found, version)

    def release(self) -> None:
        """Give the lock back. A failure here does not fail the write, because the lock runs out by itself."""
        if os.getpid() != self._pid or self._lost:
            return
        try:
            with self._changing:
                self._items.delete(self._item)
        except (BotoCoreError, ClientError, HudiError) as error:
            log.warning("%s: the lock could not be released, and runs out by itself: %s", self._table, error)


def _was_done(request: Callable[[], object]) -> bool:
    """Whether a request's condition held."""
    try:
        request()
    except ClientError as error:
        if _code(error) == "ConditionalCheckFailedException":
            return False
        raise
    return True


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _hudi_error(table: str, error: Exception) -> HudiError:
    if isinstance(error, ClientError) and _code(error) in ("AccessDeniedException", "UnrecognizedClientException"):
        return Invalid(f"{table}: DynamoDB refuses the lock: {error}; expected credentials that may use its table")
    return Unavailable(f"{table}: DynamoDB does not answer for the lock: {error}; nothing was changed: try again")
