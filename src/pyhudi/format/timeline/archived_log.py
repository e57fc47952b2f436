"""The archived timeline of layout 1: the entries of `.commits_.archive.N_1-0-1`, which are log files of Avro blocks.

There is one entry for each instant and state. A block's header holds only the schema. The block's content is
`i32 version, i32 count, count x (i32 size, Avro record)`, big endian.

Spec: format/timeline.md section 6; format/log-format.md section 2.1.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyhudi.errors import CorruptFile
from pyhudi.format.avro.container import BROKEN_BYTES, decode_container, decode_record, encode_record
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.log.block import BlockType, HeaderKey, LogBlock, encode_block
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.names import ArchiveFileName
from pyhudi.format.record_values import record_from, value_from
from pyhudi.format.timeline.action_files import (
    decode_clean_metadata,
    decode_cleaner_plan,
    decode_commit,
    decode_compaction_plan,
    decode_requested_replace,
    decode_rollback_metadata,
)
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata, RollbackMetadata

T = TypeVar("T")

MERGE_PLAN = "mergeArchivePlan"
_CONTENT_VERSION = 3
_COUNT = struct.Struct(">ii")
_SIZE = struct.Struct(">i")

# The fields of an entry that tell what a completed action did, for the actions that readers ask for.
_COMMIT_MEMBERS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")
_CLEAN_MEMBER = "hoodieCleanMetadata"
_ROLLBACK_MEMBER = "hoodieRollbackMetadata"


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """A completed instant and the Avro record of its entry, still encoded."""

    instant: Instant
    schema_text: str
    body: bytes


def archive_number(name: str) -> int | None:
    """The number in the name of an archive file, None for any other file."""
    parsed = ArchiveFileName.parse(name)
    return parsed.number if parsed is not None else None


def merged_file_name(plan: bytes, *, path: str) -> str | None:
    """The file that a merge of small archive files was about to write, from `mergeArchivePlan`."""
    if not plan:
        return None
    name = "HoodieMergeArchiveFilePlan"
    _, record = decode_container(plan, {name: schema_of(name)}, path=path)
    file_name = record["mergedArchiveFileName"]
    return file_name if isinstance(file_name, str) else None


@dataclass(frozen=True, slots=True)
class ArchivedState:
    """A state of an instant, as its file on the timeline holds it. `since`: when the file was made, as instant text."""

    instant: Instant
    since: str
    content: bytes
    path: str


def encode_archive_block(states: Sequence[ArchivedState]) -> bytes:
    """A block with an entry for each state. Raises: CorruptFile for a file of the timeline that cannot be decoded."""
    schema_text = schema_of("HoodieArchivedMetaEntry")
    bodies = [encode_record(schema_text, _entry(state)) for state in states]
    framed = b"".join(part for body in bodies for part in (_SIZE.pack(len(body)), body))
    content = _COUNT.pack(_CONTENT_VERSION, len(bodies)) + framed
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema_text}, content)


def _entry(state: ArchivedState) -> dict[str, object]:
    member = _member(state)
    return {
        "commitTime": state.instant.requested,
        "actionType": state.instant.action,
        "actionState": state.instant.state,
        "stateTransitionTime": state.since,
        **({} if member is None else {member[0]: record_from(member[1])}),
    }


def _member(state: ArchivedState) -> tuple[str, object] | None:
    """The entry's field for the content of a timeline file, and the decoded content; None for a file without content.

    Seen: for a requested commit 0.15.0 stores an empty commit, and 1.x stores nothing; both mean the same.
    """
    action, is_completed = state.instant.action, state.instant.is_completed
    if not state.content:
        return None

    match action, state.instant.state:
        case (("commit" | "deltacommit"), _):
            return "hoodieCommitMetadata", decode_commit(state.content, path=state.path)
        case "replacecommit", "COMPLETED":
            metadata = decode_commit(state.content, path=state.path)
            return "hoodieReplaceCommitMetadata", replace(
                metadata, partition_to_replace_file_ids=metadata.partition_to_replace_file_ids or {}
            )
        case "replacecommit", "INFLIGHT":
            return "HoodieInflightReplaceMetadata", decode_commit(state.content, path=state.path)
        case "replacecommit", _:
            return "hoodieRequestedReplaceMetadata", decode_requested_replace(state.content, path=state.path)
        case (("compaction" | "logcompaction"), _):
            return "hoodieCompactionPlan", decode_compaction_plan(state.content, path=state.path)
        case "clean", _ if is_completed:
            return "hoodieCleanMetadata", decode_clean_metadata(state.content, path=state.path)
        case "clean", _:
            return "hoodieCleanerPlan", decode_cleaner_plan(state.content, path=state.path)
        case "rollback", "COMPLETED":
            return "hoodieRollbackMetadata", decode_rollback_metadata(state.content, path=state.path)
        case _:
            return None


def decode_archive(content: bytes, *, path: str) -> Iterator[ArchivedEntry]:
    """The completed instants of an archive file, in the file's order. Torn blocks, from a dead writer, are passed over.

    Raises: CorruptFile for a whole block that does not hold entries.
    """
    for block in read_blocks(content, path=path):
        if block.type is BlockType.CORRUPT:
            continue
        if block.type is not BlockType.AVRO_DATA:
            raise CorruptFile(path, block.offset, expected="a block of Avro records", found=block.type.name)
        yield from _block_entries(block, path)


def _block_entries(block: LogBlock, path: str) -> Iterator[ArchivedEntry]:
    schema_text = block.header.get(HeaderKey.SCHEMA)
    content = bytes(block.read_content())
    if schema_text is None or len(content) < _COUNT.size:
        raise CorruptFile(path, block.content_offset, expected="a schema and a count", found="a block without")

    _, count = _COUNT.unpack_from(content)
    at = _COUNT.size
    for _ in range(count):
        body = content[at + _SIZE.size : at + _SIZE.size + _size_at(content, at, block, path)]
        record = _record(body, schema_text, path, block.content_offset + at)
        at += _SIZE.size + len(body)
        instant = _completed(record)
        if instant is not None:
            yield ArchivedEntry(instant, schema_text, body)


def _size_at(content: bytes, at: int, block: LogBlock, path: str) -> int:
    left = len(content) - at - _SIZE.size
    size = _SIZE.unpack_from(content, at)[0] if left >= 0 else 0
    if left < 0 or not 0 <= size <= left:
        found = f"{size:,} bytes where {max(left, 0):,} are left"
        raise CorruptFile(path, block.content_offset + at, expected="a whole archived entry", found=found)
    return int(size)


def _completed(record: dict[str, object]) -> Instant | None:
    """The instant of an entry; None for an entry of an earlier state. An entry without a state is a completed one."""
    requested, action = record.get("commitTime"), record.get("actionType")
    if not isinstance(requested, str) or not isinstance(action, str):
        return None
    if record.get("actionState", "COMPLETED") not in ("COMPLETED", None):
        return None
    completed = record.get("stateTransitionTime")
    return Instant(requested, action, "COMPLETED", completed if isinstance(completed, str) else requested)


def archived_commit(entry: ArchivedEntry, *, path: str) -> CommitMetadata:
    """The metadata of an archived commit, delta commit or replace commit."""
    record = _record(entry.body, entry.schema_text, path, 0)
    member = next((record[name] for name in _COMMIT_MEMBERS if record.get(name) is not None), None)
    return CommitMetadata() if member is None else _value(CommitMetadata, member, path)


def archived_clean(entry: ArchivedEntry, *, path: str) -> CleanMetadata | None:
    """The metadata of an archived clean; None if its entry has none."""
    member = _record(entry.body, entry.schema_text, path, 0).get(_CLEAN_MEMBER)
    return None if member is None else _value(CleanMetadata, member, path)


def archived_rollback(entry: ArchivedEntry, *, path: str) -> RollbackMetadata | None:
    """The metadata of an archived rollback; None if its entry has none."""
    member = _record(entry.body, entry.schema_text, path, 0).get(_ROLLBACK_MEMBER)
    return None if member is None else _value(RollbackMetadata, member, path)


def _value(kind: type[T], member: object, path: str) -> T:
    try:
        return value_from(kind, member)
    except ValueError as error:
        raise CorruptFile(path, 0, expected=f"the fields of {kind.__name__}", found=str(error)) from error


def _record(body: bytes, schema_text: str, path: str, offset: int) -> dict[str, object]:
    try:
        return decode_record(body, schema_text)
    except BROKEN_BYTES as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise CorruptFile(path, offset, expected="an archived entry", found=said) from error
