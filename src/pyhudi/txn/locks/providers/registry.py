"""Chooses the guard of a writer that names a lock provider."""

from collections.abc import Callable
from typing import assert_never

from pyhudi.errors import Invalid, Unsupported
from pyhudi.storage.open import open_versioned
from pyhudi.storage.protocol import StorageLocation
from pyhudi.storage.uris import ObjectUri, parse_uri
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.guard import Guard, Lives
from pyhudi.txn.locks.lease import LeaseGuard, LeaseTerms
from pyhudi.txn.locks.providers.protocol import Provider, not_installed
from pyhudi.txn.locks.providers.settings import PROVIDER, LockSettings, ProviderName
from pyhudi.txn.locks.providers.storage import StorageLock
from pyhudi.txn.locks.providers.together import LivelyTogetherGuard, TogetherGuard


def provided_guard(
    settings: LockSettings | None,
    location: StorageLocation,
    *,
    clock: Clock,
    new_uuid: Callable[[], str],
    own: Guard,
) -> Guard:
    """The guard of a writer with these settings. `own`: what guards the table without a setting; None: that one alone.

    No request is made before the guard is acquired.
    Raises: Unsupported for a lock that cannot be had for this table, or whose package is not installed; Invalid for
    options that cannot be.
    """
    if settings is None:
        return own
    if settings.provider is ProviderName.STORAGE:
        return _storage_guard(settings, location, clock, new_uuid, own)

    other = open_provider(settings, location, clock, new_uuid)
    kind = LivelyTogetherGuard if isinstance(own, Lives) else TogetherGuard
    return kind(own, other, settings)


def _storage_guard(
    settings: LockSettings, location: StorageLocation, clock: Clock, new_uuid: Callable[[], str], own: Guard
) -> Guard:
    """The lease. The own guard of a table in an object store is the same lease, which is taken once."""
    if not isinstance(parse_uri(location.uri), ObjectUri):
        raise Unsupported(
            f"option '{PROVIDER}'='{settings.provider.value}': {location.uri} is in no object store; expected one, as "
            "Apache Hudi does; leave the option out, or take FileSystemBasedLockProvider"
        )
    terms = lease_terms(settings)
    if isinstance(own, LeaseGuard):
        return own.with_terms(terms)
    lease = LeaseGuard(open_versioned(location), table=location.uri, clock=clock, new_uuid=new_uuid, terms=terms)
    return TogetherGuard(own, StorageLock(lease, clock), settings)


def lease_terms(settings: LockSettings) -> LeaseTerms:
    """How long a lease holds, and how often it is renewed. Raises: Invalid for a validity below ten renewals."""
    o, d = settings.values, LeaseTerms()
    validity = o.count("hoodie.write.lock.storage.validity.timeout.secs", d.validity_ms // 1000, most=86_400)
    renewal = o.count("hoodie.write.lock.storage.renew.interval.secs", d.renewal_ms // 1000, most=86_400)
    if validity < 10 * renewal:
        raise Invalid(
            f"option 'hoodie.write.lock.storage.validity.timeout.secs'='{validity}': expected at least ten times "
            f"hoodie.write.lock.storage.renew.interval.secs, which is {renewal}, as Apache Hudi does"
        )
    return LeaseTerms(validity_ms=validity * 1000, renewal_ms=renewal * 1000)


def open_provider(
    settings: LockSettings, location: StorageLocation, clock: Clock, new_uuid: Callable[[], str]
) -> Provider:
    """The lock alone. Raises: as `provided_guard`."""
    match settings.provider:
        case ProviderName.IN_PROCESS:
            from pyhudi.txn.locks.providers.in_process import InProcessLock

            return InProcessLock(location.uri, settings, clock)
        case ProviderName.FILE_SYSTEM:
            from pyhudi.txn.locks.providers.file_system import FileLock

            return FileLock.open(location, settings, clock, new_uuid)
        case ProviderName.ZOOKEEPER | ProviderName.ZOOKEEPER_IMPLICIT:
            try:
                from pyhudi.txn.locks.providers.zookeeper import ZookeeperLock
            except ModuleNotFoundError as error:
                raise not_installed(settings.provider, "zookeeper", error) from error
            return ZookeeperLock.open(location, settings, clock, new_uuid)
        case ProviderName.DYNAMODB | ProviderName.DYNAMODB_IMPLICIT:
            try:
                from pyhudi.txn.locks.providers.dynamodb import DynamodbLock
            except ModuleNotFoundError as error:
                raise not_installed(settings.provider, "dynamodb", error) from error
            return DynamodbLock.open(location, settings, clock, new_uuid)
        case ProviderName.HIVE:
            try:
                from pyhudi.txn.locks.providers.hive_metastore import HiveLock
            except ModuleNotFoundError as error:
                raise not_installed(settings.provider, "hive", error) from error
            return HiveLock.open(location, settings, clock, new_uuid)
        case ProviderName.STORAGE:
            raise AssertionError("the lease is chosen before")
        case _:
            assert_never(settings.provider)
