"""The files of the timeline: bytes <-> values.

Commits of table versions up to 6 are JSON; all other files are Avro container files. Older files lack trailing fields:
records are resolved by name, and a missing field gets its default.

Spec: format/timeline.md sections 4 and 4.2. Seen: 1.0.2 and 1.2.0 leave `version` null in every commit,
inflight workload profiles included, and set it in all other records except the empty replace request.
"""

import json
import re
from typing import TypeVar

from pyhudi.by_content import ByContent
from pyhudi.errors import CorruptFile
from pyhudi.format.avro.container import MAGIC, decode_container, encode_container
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.pretty_json import pretty_json
from pyhudi.format.record_values import names_in_record, record_from, value_from
from pyhudi.format.timeline.records import (
    CleanerPlan,
    CleanMetadata,
    CommitMetadata,
    CompactionPlan,
    IndexCommitMetadata,
    IndexPlan,
    RequestedReplaceMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RuntimeStats,
    SavepointMetadata,
    WriteStat,
)

T = TypeVar("T")

_COMMITS = ("HoodieCommitMetadata", "HoodieReplaceCommitMetadata")


def decode_commit(content: bytes, *, path: str) -> CommitMetadata:
    """The metadata in the file of a commit, delta commit or replace commit, in any state; none in an empty file.

    Raises: CorruptFile for anything but Avro or JSON commit metadata. `path` is for messages.
    """
    return _commits.get(content, lambda: _decode_commit(content, path)) if content else CommitMetadata()


_commits: ByContent[bytes, CommitMetadata] = ByContent(32 << 20, lambda content, _: 8 * len(content))
"""Commits that were read before: each call of a table reads the newest ones."""


def _decode_commit(content: bytes, path: str) -> CommitMetadata:
    if content.startswith(MAGIC):
        _, record = decode_container(content, {name: schema_of(name) for name in _COMMITS}, path=path)
    else:
        record = _json_object(content, path)
    return _value(CommitMetadata, record, path)


def encode_commit_avro(metadata: CommitMetadata) -> bytes:
    """The file of a commit on table version 8 and later; of a replace commit, if the commit replaces file groups.

    Seen: `version` is null, not 1 (1.0.2, 1.2.0).
    """
    is_replace = metadata.partition_to_replace_file_ids is not None
    schema = schema_of("HoodieReplaceCommitMetadata" if is_replace else "HoodieCommitMetadata")
    return encode_container(schema, {**record_from(metadata), "version": None})


def decode_rollback_plan(content: bytes, *, path: str) -> RollbackPlan:
    """The plan in `<instant>.rollback.requested`."""
    return _decode(content, RollbackPlan, "HoodieRollbackPlan", path)


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    return encode_container(schema_of("HoodieRollbackPlan"), record_from(plan))


def decode_rollback_metadata(content: bytes, *, path: str) -> RollbackMetadata:
    """The metadata of a completed rollback."""
    return _decode(content, RollbackMetadata, "HoodieRollbackMetadata", path)


def encode_rollback_metadata(metadata: RollbackMetadata) -> bytes:
    return encode_container(schema_of("HoodieRollbackMetadata"), record_from(metadata))


def decode_restore_plan(content: bytes, *, path: str) -> RestorePlan:
    """The plan in `<instant>.restore.requested`."""
    return _decode(content, RestorePlan, "HoodieRestorePlan", path)


def encode_restore_plan(plan: RestorePlan) -> bytes:
    return encode_container(schema_of("HoodieRestorePlan"), record_from(plan))


def decode_restore_metadata(content: bytes, *, path: str) -> RestoreMetadata:
    """The metadata of a completed restore."""
    return _decode(content, RestoreMetadata, "HoodieRestoreMetadata", path)


def encode_restore_metadata(metadata: RestoreMetadata) -> bytes:
    return encode_container(schema_of("HoodieRestoreMetadata"), record_from(metadata))


def decode_cleaner_plan(content: bytes, *, path: str) -> CleanerPlan:
    """The plan in `<instant>.clean.requested`. The inflight file is a copy of that file, or empty."""
    return _decode(content, CleanerPlan, "HoodieCleanerPlan", path)


def encode_cleaner_plan(plan: CleanerPlan) -> bytes:
    return encode_container(schema_of("HoodieCleanerPlan"), record_from(plan))


def decode_clean_metadata(content: bytes, *, path: str) -> CleanMetadata:
    """The metadata of a completed clean."""
    return _decode(content, CleanMetadata, "HoodieCleanMetadata", path)


def encode_clean_metadata(metadata: CleanMetadata) -> bytes:
    return encode_container(schema_of("HoodieCleanMetadata"), record_from(metadata))


def decode_savepoint(content: bytes, *, path: str) -> SavepointMetadata:
    """The metadata of a completed savepoint."""
    return _decode(content, SavepointMetadata, "HoodieSavepointMetadata", path)


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    return encode_container(schema_of("HoodieSavepointMetadata"), record_from(metadata))


def decode_requested_replace(content: bytes, *, path: str) -> RequestedReplaceMetadata:
    """The request of a replace commit, or the plan of a clustering; nothing in an empty file."""
    if not content:
        return RequestedReplaceMetadata()
    return _decode(content, RequestedReplaceMetadata, "HoodieRequestedReplaceMetadata", path)


def encode_requested_replace(metadata: RequestedReplaceMetadata) -> bytes:
    """The requested file of a replace commit or clustering.

    Seen: an insert overwrite of 1.2.0 requests with all fields null, `version` included.
    """
    return encode_container(schema_of("HoodieRequestedReplaceMetadata"), record_from(metadata))


def decode_compaction_plan(content: bytes, *, path: str) -> CompactionPlan:
    """The plan of a requested compaction or log compaction."""
    return _decode(content, CompactionPlan, "HoodieCompactionPlan", path)


def encode_compaction_plan(plan: CompactionPlan) -> bytes:
    return encode_container(schema_of("HoodieCompactionPlan"), record_from(plan))


def decode_index_plan(content: bytes, *, path: str) -> IndexPlan:
    """The plan in `<instant>.indexing.requested`."""
    return _decode(content, IndexPlan, "HoodieIndexPlan", path)


def encode_index_plan(plan: IndexPlan) -> bytes:
    return encode_container(schema_of("HoodieIndexPlan"), record_from(plan))


def decode_index_commit(content: bytes, *, path: str) -> IndexCommitMetadata:
    """The metadata of a completed indexing action."""
    return _decode(content, IndexCommitMetadata, "HoodieIndexCommitMetadata", path)


def encode_index_commit(metadata: IndexCommitMetadata) -> bytes:
    return encode_container(schema_of("HoodieIndexCommitMetadata"), record_from(metadata))


def _decode(content: bytes, kind: type[T], name: str, path: str) -> T:
    _, record = decode_container(content, {name: schema_of(name)}, path=path)
    return _value(kind, record, path)


def _value(kind: type[T], record: dict[str, object], path: str) -> T:
    try:
        return value_from(kind, record)
    except ValueError as error:
        raise CorruptFile(path, 0, expected=f"the fields of {kind.__name__}", found=str(error)) from error


# JSON, for table versions up to 6.

_JSON_STAT = (
    *("num_inserts", "num_updates", "num_deletes", "total_log_read_time_ms", "total_log_records"),
    *(
        "total_log_files_compacted",
        "total_log_size_compacted",
        "total_updated_records_compacted",
        "total_log_blocks",
    ),
    *(
        "total_corrupt_log_block",
        "total_rollback_blocks",
        "file_id",
        "path",
        "cdc_stats",
        "prev_commit",
        "num_writes",
    ),
    *("num_update_writes", "total_write_bytes", "total_write_errors", "temp_path", "partition_path"),
    *("file_size_in_bytes", "min_event_time", "max_event_time", "prev_base_file", "runtime_stats"),
)
_JSON_LOG_STAT = ("log_version", "log_offset", "base_file", "log_files")
_JSON_RUNTIME = ("total_scan_time", "total_upsert_time", "total_create_time")
# Numbers that Java holds as primitives, so that they are never null in JSON.
_COUNTERS = frozenset(
    name for name in (*_JSON_STAT, "log_version", "log_offset") if re.match("num_|total_|file_size|log_", name)
)


def encode_commit_json(metadata: CommitMetadata) -> bytes:
    """The file of a commit on table versions up to 6.

    Seen: 1.0.2 writes these names in this order on version 6, down to the empty `recordsStats` of log files.
    0.15.0 writes another order, and lacks `numUpdates`, `totalLogReadTimeMs` and `prevBaseFile`; it ignores
    names that it does not know.
    """
    stats = metadata.partition_to_write_stats
    top: dict[str, object] = {
        "partitionToWriteStats": {
            partition: [write_stat_json(s) for s in of_one] for partition, of_one in stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra_metadata),
        "operationType": metadata.operation_type,
    }
    if metadata.partition_to_replace_file_ids is not None:
        replaced = metadata.partition_to_replace_file_ids
        top["partitionToReplaceFileIds"] = {partition: list(ids) for partition, ids in replaced.items()}
    return pretty_json(top).encode()


def write_stat_json(stat: WriteStat) -> dict[str, object]:
    """A write stat, the statement about one data file, as the object that becomes JSON."""
    made = {names_in_record(WriteStat, name)[0]: _json_value(stat, name) for name in _JSON_STAT}
    if stat.is_log:
        made |= {names_in_record(WriteStat, name)[0]: _json_value(stat, name) for name in _JSON_LOG_STAT}
        made["recordsStats"] = {"val": None}
    return made


def _json_value(stat: WriteStat, name: str) -> object:
    value: object = getattr(stat, name)
    if isinstance(value, RuntimeStats):
        return {names_in_record(RuntimeStats, part)[0]: getattr(value, part) or 0 for part in _JSON_RUNTIME}
    if isinstance(value, tuple):
        return list(value)
    return 0 if value is None and name in _COUNTERS else value


def _json_object(content: bytes, path: str) -> dict[str, object]:
    try:
        decoded = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        found = f"{content[:12].hex(' ')} ({error})"
        raise CorruptFile(path, 0, expected="commit metadata, Avro or JSON", found=found) from error
    if not isinstance(decoded, dict):
        raise CorruptFile(path, 0, expected="a JSON object", found=type(decoded).__name__)
    return decoded
