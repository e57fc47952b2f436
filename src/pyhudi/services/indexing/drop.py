"""Dropping indexes of the metadata table."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import Conflict, Invalid, NotFound
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.services.indexing.plans import Life, lists_of, pending_indexings, undo
from pyhudi.txn.action.session import WriteSession
from pyhudi.versions import TableVersion


@dataclass(frozen=True, slots=True)
class DroppedIndexes:
    """The partitions of the metadata table that were dropped: the index, and those that cannot exist without it."""

    partitions: tuple[str, ...]


def drop_index(session: WriteSession, settings: IndexSettings, name: str) -> DroppedIndexes:
    """Drop an index that is ready or being built, and the plans for it.

    `name`: of its partition; a secondary index and an index on an expression also go by their own names.
    Readers lose the index before its files are deleted. A reader that is at it already lists the storage, or scans.
    Raises: NotFound, naming the table's indexes; Conflict while another process builds it; Invalid where the next write
    would build it again.
    """
    lists = lists_of(session)
    config, pending = lists.config(), pending_indexings(session)
    listed = config.metadata_partitions_named
    known = listed | {partition for indexing in pending for partition in indexing.partitions}

    found = [one for one in registry.partition_names(name) if one in known]
    if not found:
        have = ", ".join(sorted(name for name in known if not registry.is_listing(name))) or "none"
        raise NotFound(f"index '{name}': expected one of the table's, which are: {have}")
    if registry.is_listing(found[0]):
        raise Invalid(f"index '{found[0]}': is the metadata table itself; write with hoodie.metadata.enable=false")

    partition = found[0]
    option = _wanted_by(settings, partition, read_definitions(session.access.storage), config.version)
    if option:
        raise Invalid(
            f"index '{partition}': {option} is set, and the next write would build it again; take it away first: "
            f"set_properties({{'{option}': None}}), where the table stores it"
        )

    mine = [indexing for indexing in pending if partition in indexing.partitions]
    for indexing in mine:
        if indexing.life is Life.RUNNING:
            raise Conflict(
                f"indexing '{indexing.instant.requested}' of '{partition}' is being run (its heartbeat is "
                f"{indexing.beat_age_ms:,} ms old); wait for it to end"
            )

    for indexing in mine:
        undo(session, indexing)

    # Undoing a build may have completed it, so the lists are read again.
    config = lists.config()
    listed = config.metadata_partitions_named
    going = {partition, *(registry.dependents({partition}, listed - {partition}) if partition in listed else ())}
    lists.drop(going)

    return DroppedIndexes(tuple(sorted(going)))


def _wanted_by(
    settings: IndexSettings, partition: str, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
) -> str:
    """The option that asks for an index; empty for none."""
    option = registry.wanted_by(settings, definitions, table_version).get(partition, "")
    return "" if settings.is_async else option
