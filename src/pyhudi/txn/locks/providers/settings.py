"""Which of Apache Hudi's lock providers a writer holds beside the table's own guard, and its options."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.values import OptionValues

PREFIX = "hoodie.write.lock."
PROVIDER = "hoodie.write.lock.provider"
WAIT = "hoodie.write.lock.wait_time_ms"
FILE_PATH = "hoodie.write.lock.filesystem.path"

_LOCKS = "org.apache.hudi.client.transaction.lock"
_AWS = "org.apache.hudi.aws.transaction.lock"


class ProviderName(Enum):
    """The providers that pyhudi has, under the names of Apache Hudi's classes."""

    IN_PROCESS = f"{_LOCKS}.InProcessLockProvider"
    FILE_SYSTEM = f"{_LOCKS}.FileSystemBasedLockProvider"
    STORAGE = f"{_LOCKS}.StorageBasedLockProvider"
    ZOOKEEPER = f"{_LOCKS}.ZookeeperBasedLockProvider"
    ZOOKEEPER_IMPLICIT = f"{_LOCKS}.ZookeeperBasedImplicitBasePathLockProvider"
    DYNAMODB = f"{_AWS}.DynamoDBBasedLockProvider"
    DYNAMODB_IMPLICIT = f"{_AWS}.DynamoDBBasedImplicitPartitionKeyLockProvider"
    HIVE = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"

    @property
    def stays_in_table(self) -> bool:
        """Whether the lock lies in this process or in the table's folder, so that its holder reaches nothing else."""
        return self in (ProviderName.IN_PROCESS, ProviderName.FILE_SYSTEM, ProviderName.STORAGE)

    @property
    def reaches_others(self) -> bool:
        """Whether writers of Apache Hudi that name this provider hold the same lock, and not one of their process."""
        return self is not ProviderName.IN_PROCESS


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses between two questions to a lock that somebody holds: the first, doubled each time, up to the longest."""

    first_ms: int = 100
    longest_ms: int = 1_000

    def after(self, tries: int) -> int:
        """The pause after so many tries."""
        return min(self.first_ms << min(tries, 20), self.longest_ms)


@dataclass(frozen=True, slots=True)
class LockSettings:
    """A lock provider and how it is asked.

    `wait_ms`: the option of this name, where it is stated; a DynamoDB lease holds for as long. `pauses`: between two
    questions to a held lock. `request_tries`: how often a request is made again that the lock service does not answer.
    `client_retries`: further waits after a wait that was in vain, each after `client_pause_ms`. Apache Hudi makes 50;
    here one wait is the whole wait unless the option is stated. `options`: all `hoodie.write.lock.*` of the caller.
    `table_name`: the key of the lock where the options name none.
    """

    provider: ProviderName
    wait_ms: int = 60_000
    pauses: Pauses = Pauses()
    request_tries: int = 3
    client_retries: int = 0
    client_pause_ms: int = 5_000
    table_name: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def values(self) -> OptionValues:
        return OptionValues(dict(self.options))

    def text(self, name: str, default: str = "") -> str:
        """The text of an option; empty texts count as left out."""
        return dict(self.options).get(name, "").strip() or default

    def needed(self, name: str, default: str = "") -> str:
        """As `text`. Raises: Invalid if the option is left out and has no default."""
        found = self.text(name, default)
        if not found:
            raise Invalid(f"option '{name}': expected, because {PROVIDER}='{self.provider.value}', found none")
        return found

    @classmethod
    def from_options(cls, callers: Mapping[str, str], table: Mapping[str, str]) -> "LockSettings | None":
        """The lock that a writer holds beside the table's own guard; None: no other.

        `callers`: the options of the call and the handle. `table`: the table's properties, which anybody may have
        written. A provider that they name is followed if its lock stays in the table's folder. Any other has to be
        named by the caller: a table must not send its writers to an address of its choice, and a writer that passes
        over the lock that others hold may lose their rows. The provider's options come from the caller alone.

        Raises: Invalid for another name, or options that cannot be; Unsupported as said.
        """
        named = callers.get(PROVIDER, "").strip()
        own = table.get(PROVIDER, "").strip()
        if not named and not own:
            return None

        provider = _parse_provider(named or own)
        options = {name: text for name, text in callers.items() if name.startswith(PREFIX)}
        if not named:
            _refuse_far_lock(provider, own, callers, table)
            options = {name: text for name, text in table.items() if name.startswith(PREFIX)} | options

        o, d, pauses = OptionValues(options), cls(provider), Pauses()
        first_ms = o.count("hoodie.write.lock.wait_time_ms_between_retry", pauses.first_ms)
        longest_ms = o.count("hoodie.write.lock.max_wait_time_ms_between_retry", max(pauses.longest_ms, first_ms))
        return cls(
            provider,
            wait_ms=o.count(WAIT, d.wait_ms, least=0),
            pauses=Pauses(first_ms, max(first_ms, longest_ms)),
            request_tries=o.count("hoodie.write.lock.num_retries", d.request_tries, least=0),
            client_retries=o.count("hoodie.write.lock.client.num_retries", d.client_retries, least=0),
            client_pause_ms=o.count("hoodie.write.lock.client.wait_time_ms_between_retry", d.client_pause_ms, least=0),
            table_name=table.get("hoodie.table.name", ""),
            options=tuple(sorted(options.items())),
        )


def _parse_provider(name: str) -> ProviderName:
    try:
        return ProviderName(name)
    except ValueError:
        known = ", ".join(one.value for one in ProviderName)
        raise Invalid(f"option '{PROVIDER}'='{name}': expected one of {known}") from None


def _refuse_far_lock(provider: ProviderName, own: str, callers: Mapping[str, str], table: Mapping[str, str]) -> None:
    """Raises: Unsupported for a lock outside the table's folder that only the table's properties name."""
    path = table.get(FILE_PATH, "").strip()
    leads_away = provider is ProviderName.FILE_SYSTEM and path and not callers.get(FILE_PATH, "").strip()
    if provider.stays_in_table and not leads_away:
        return
    also = f", and {FILE_PATH}" if leads_away else ""
    raise Unsupported(
        f"the table's properties name the lock provider '{own}', whose lock lies outside the table's folder; a table's "
        f"properties may not send a writer there: name {PROVIDER}{also} and its options in the options of the call or "
        "of open"
    )
