"""What completed writes say of themselves: their metadata, the schema, the file groups they replaced."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyhudi.format.commit import decode_clean_metadata, decode_commit
from pyhudi.format.schema import without_meta_fields
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline

SCHEMA = "schema"


def read_commit(storage: Storage, timeline: Timeline, instant: Instant) -> CommitMetadata:
    """The metadata of a completed write. One get."""
    assert instant.is_completed
    path = timeline.layout.path(instant)
    return decode_commit(storage.get(path), path=path)


def read_schema_text(storage: Storage, timeline: Timeline, create_schema: str | None) -> str | None:
    """The Avro schema of the table's rows, without meta fields, as of this timeline.

    That of the newest completed write that states one; before the first, the one that the table was
    created with; None when nobody has said yet. Spec: format/actions.md section 1.2. One get, as a rule.
    """
    for instant in reversed(timeline.completed_writes):
        text = read_commit(storage, timeline, instant).extra_metadata.get(SCHEMA)
        if text:
            return without_meta_fields(text)
    return create_schema


def read_replaced(storage: Storage, timeline: Timeline) -> dict[str, dict[str, str]]:
    """Partition -> file id -> requested time of the write that replaced the group. One get a replacecommit."""
    replaced: dict[str, dict[str, str]] = {}
    for instant in timeline.completed_writes:
        if instant.action == "replacecommit":
            metadata = read_commit(storage, timeline, instant)
            for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
                replaced.setdefault(partition, {}).update(dict.fromkeys(file_ids, instant.requested))
    return replaced


def read_earliest_retained(storage: Storage, timeline: Timeline) -> str | None:
    """The earliest commit that the last clean kept the files of; None where nothing was cleaned away."""
    cleans = [i for i in timeline if i.action == "clean" and i.is_completed]
    if not cleans:
        return None
    path = timeline.layout.path(cleans[-1])
    return decode_clean_metadata(storage.get(path), path=path).earliest_commit_to_retain or None


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
