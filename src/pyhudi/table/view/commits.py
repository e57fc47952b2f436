"""Reads what completed writes state: their metadata, the schema, the file groups that they replaced."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pyhudi.errors import NotFound
from pyhudi.format.schema.conversion import without_meta_fields
from pyhudi.format.timeline.action_files import decode_clean_metadata, decode_commit
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import MOVES, REWRITES, CleanMetadata, CommitMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.schema_on_read import LATEST_SCHEMA
from pyhudi.timeline.active import Timeline

T = TypeVar("T")

SCHEMA = "schema"

SERVICES = frozenset((*REWRITES, *MOVES))
"""The operations that leave a table's columns as they are."""


def read_commit(storage: Storage, timeline: Timeline, instant: Instant) -> CommitMetadata:
    """The metadata of a completed write. One get; for an archived write, what reading the history costs.

    A write may be archived between listing and reading. Then its file is gone, and the history is read.
    Raises: NotFound if neither has the metadata.
    """
    assert instant.is_completed
    if timeline.is_active(instant):
        path = timeline.layout.path(instant)
        try:
            return decode_commit(storage.get(path), path=path)
        except NotFound as error:
            return _archived(error, lambda: timeline.history.read_commit(instant))
    return timeline.history.read_commit(instant)


def _archived(error: NotFound, read: Callable[[], T]) -> T:
    """What `read` finds in the history about an instant whose file is gone. Nothing found: raises the first error."""
    try:
        return read()
    except NotFound:
        raise error from None


@dataclass(frozen=True, slots=True)
class StatedSchema:
    """The Avro schema of a table's rows, without meta fields; None if nothing states one.

    `latest`: the same columns with their numbers, as the write states them for a table of schema-on-read evolution;
    None for another table.
    """

    text: str | None
    latest: str | None = None


def read_stated_schema(storage: Storage, timeline: Timeline, create_schema: str | None) -> StatedSchema:
    """The schema of the table as of this timeline.

    The schema is the one of the newest completed write that states one, archived writes included. If no write does, it
    is the schema that the table was created with, or None. Spec: format/actions.md section 1.2.
    Usually one get, and another one for each service that completed after the last write.

    Services do not count while a write is active: they state the columns of the time when they were planned, and a
    write that began earlier may have brought others since. Seen: Apache Hudi passes over them, too
    (`WriteOperationType.canUpdateSchema`); a clustering of 1.2.0 states no numbers of columns, whatever the table has.
    """
    of_service: StatedSchema | None = None
    for instant in _newest_first(timeline):
        if of_service is not None and not timeline.is_active(instant):
            break
        metadata = read_commit(storage, timeline, instant)
        extra = metadata.extra_metadata
        if text := extra.get(SCHEMA):
            stated = StatedSchema(without_meta_fields(text), extra.get(LATEST_SCHEMA) or None)
            if metadata.operation_type not in SERVICES:
                return stated
            of_service = of_service or stated
    return of_service or StatedSchema(create_schema)


def _newest_first(timeline: Timeline) -> Iterator[Instant]:
    """Completed writes from the newest back. The history is read only after all active writes were taken."""
    yield from reversed(timeline.completed_writes)
    if timeline.instants:  # archival always leaves some active, so an empty timeline has no history
        yield from reversed(timeline.archived_writes())


def read_replaced(storage: Storage, timeline: Timeline) -> dict[str, dict[str, str]]:
    """Partition -> file id -> requested time of the write that replaced the group. One get for each replacecommit."""
    replaced: dict[str, dict[str, str]] = {}
    for instant in timeline.completed_writes:
        if instant.action == "replacecommit":
            metadata = read_commit(storage, timeline, instant)
            for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
                replaced.setdefault(partition, {}).update(dict.fromkeys(file_ids, instant.requested))
    return replaced


def read_earliest_retained(storage: Storage, timeline: Timeline) -> str | None:
    """The earliest commit whose files the last clean kept. None if nothing was cleaned away.

    If no clean is active, archived cleans count: the files that they deleted are gone all the same.
    """
    clean = read_newest_clean(storage, timeline)
    if clean is None:
        archived = [i for i in timeline.history.instants() if i.action == "clean"]
        clean = timeline.history.read_clean(archived[-1]) if archived else None
    return clean.earliest_commit_to_retain or None if clean is not None else None


def read_newest_clean(storage: Storage, timeline: Timeline) -> CleanMetadata | None:
    """What the newest completed clean of the active timeline did. One get."""
    cleans = [i for i in timeline if i.action == "clean" and i.is_completed]
    return read_clean(storage, timeline, cleans[-1]) if cleans else None


def read_clean(storage: Storage, timeline: Timeline, instant: Instant) -> CleanMetadata | None:
    """What a completed clean did. It was active when it was listed, and may be archived by now. One get."""
    path = timeline.layout.path(instant)
    try:
        return decode_clean_metadata(storage.get(path), path=path)
    except NotFound as error:
        return _archived(error, lambda: timeline.history.read_clean(instant))


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file that a commit names: its partition, file group, and path relative to the table."""

    partition: str
    file_id: str
    path: str
    size_bytes: int


def written_files(metadata: CommitMetadata) -> Iterable[WrittenFile]:
    """The files that a commit wrote."""
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path:
                yield WrittenFile(partition, stat.file_id or "", stat.path, stat.file_size_in_bytes or 0)
