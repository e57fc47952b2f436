"""Records of the metadata table that list partitions and files, one by one.

A record of the partition `files` maps the names of a data partition's files to their sizes. One more record, under a
key of its own, lists the data partitions. A deleted file stays as a tombstone as long as an older record may hold it.

Spec: format/metadata-table.md sections 5, 6 and 9.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyhudi.errors import CorruptFile
from pyhudi.format.avro.container import BROKEN_BYTES, decode_record, encode_record
from pyhudi.format.metadata.groups import FILES_TYPE as FILES_TYPE
from pyhudi.format.metadata.groups import PARTITION_LIST_TYPE as PARTITION_LIST_TYPE
from pyhudi.format.names import PARTITIONS_KEY as PARTITIONS_KEY
from pyhudi.format.schema.conversion import FILE_NAME

ROOT_PARTITION_KEY = "."
"""The key of a table without partitions, whose partition path is empty."""


class FileState(NamedTuple):
    """A file, or a partition (size 0), as a record of the metadata table states it."""

    size_bytes: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class FilesRecord:
    """The metadata table's record of the files of one partition, or of the table's partitions.

    `type`: `FILES_TYPE` or `PARTITION_LIST_TYPE`. `files`: names -> states, tombstones included.
    """

    type: int
    files: Mapping[str, FileState]

    @property
    def live(self) -> dict[str, int]:
        """Name -> size of the files that are not deleted."""
        return {name: state.size_bytes for name, state in self.files.items() if not state.is_deleted}


def files_key(partition: str) -> str:
    """The key of a data partition's record in the metadata table. The list of partitions has the same name for it."""
    return partition or ROOT_PARTITION_KEY


def partition_of_key(key: str) -> str:
    """The data partition's path; the inverse of `files_key`."""
    return "" if key == ROOT_PARTITION_KEY else key


def encode_files_record(files_record: FilesRecord, schema_text: str, *, base_file_name: str | None = None) -> bytes:
    """The record's Avro binary under a schema. The schema of table version 8 gives the same bytes as that of 9.

    `base_file_name`: the HFile that the record goes into; None in a log block. Seen: 1.0.2 keeps the key outside of
    the record. It fills only one meta field, the file name, and only in base files.
    """
    assert files_record.type in (FILES_TYPE, PARTITION_LIST_TYPE)
    files = {name: {"size": size, "isDeleted": gone} for name, (size, gone) in files_record.files.items()}
    stored: dict[str, object] = {FILE_NAME: base_file_name, "key": "", "type": files_record.type}
    return encode_record(schema_text, {**stored, "filesystemMetadata": files})


def decode_files_record(value: bytes, schema_text: str, *, path: str = "metadata table") -> FilesRecord:
    """The record in Avro binary, under the schema that it was written with. `path` is for messages.

    Raises: CorruptFile for bytes that break the schema, and for a record of another metadata partition.
    """
    try:
        stored = decode_record(value, schema_text)
    except BROKEN_BYTES as error:
        found = f"{type(error).__name__}: {error}"[:200]
        raise CorruptFile(path, 0, expected="one HoodieMetadataRecord", found=found) from error
    kind, files = stored.get("type"), stored.get("filesystemMetadata")
    if kind not in (FILES_TYPE, PARTITION_LIST_TYPE) or not isinstance(files, dict | None):
        raise CorruptFile(path, 0, expected="a record of type 1 or 2 with files", found=f"type {kind!r}")
    try:
        states = {name: FileState(int(info["size"]), bool(info["isDeleted"])) for name, info in (files or {}).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(path, 0, expected="size and isDeleted of each file", found=f"{error!r}") from error
    assert isinstance(kind, int)
    return FilesRecord(kind, states)


def merge_files_records(older: FilesRecord, newer: FilesRecord) -> FilesRecord:
    """Two records of one key as one. To merge more, start with the base file's record and go on in log order.

    Two live entries become one with the larger size, as logs of table version 6 grow. A deleted entry removes
    an older live entry; without one, it stays as a tombstone.

    Spec: format/metadata-table.md section 9.
    """
    merged = dict(older.files)
    for name, state in newer.files.items():
        before = merged.get(name)
        if before is None or before.is_deleted:
            merged[name] = state
        elif state.is_deleted:
            del merged[name]
        else:
            merged[name] = FileState(max(before.size_bytes, state.size_bytes), is_deleted=False)
    return FilesRecord(newer.type, merged)
