"""The two HFiles of a bootstrap index, and the records in them.

Layout: an HFile for partitions, with the key `part=PARTITION`; an HFile for file groups, with the key
`part=PARTITION;fileid=ID`. Each value is a whole Avro container file with one record. Spec: format/bootstrap.md
section 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyhudi.errors import CorruptFile
from pyhudi.format.avro.container import decode_record, parsed_schema, split_container
from pyhudi.format.names import HOODIE, join

_NAME: Final = "00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
PARTITIONS_FILE: Final = join(f"{HOODIE}/.aux/.bootstrap/.partitions", _NAME)
FILE_IDS_FILE: Final = join(f"{HOODIE}/.aux/.bootstrap/.fileids", _NAME)

_PARTITION_RECORD = "HoodieBootstrapPartitionMetadata"


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A source file as the index has it. `uri`: absolute, at the time of the bootstrap. `size_bytes`: -1: unknown."""

    uri: str
    size_bytes: int


def partition_key(partition: str) -> bytes:
    """Example: the partition `part=p1` has the key `part=part=p1`."""
    return f"part={partition}".encode()


def decode_partition(value: bytes, *, path: str) -> Mapping[str, StoredSource]:
    """The source file of each base file of a partition, by file id.

    Seen: 0.15.0 fills owner and group of a file, 1.0.2 and 1.2.0 leave them null. Raises: CorruptFile.
    """
    schema_text, body, offset = split_container(value, path=path)
    try:
        name = str(parsed_schema(schema_text)["name"]).rpartition(".")[2]
        record = decode_record(body, schema_text)
        files = record["fileIdToBootstrapFile"] or {}
        assert isinstance(files, dict)
        found = {str(file_id): _source(status) for file_id, status in files.items()}
    except (ValueError, KeyError, TypeError, EOFError, IndexError, AssertionError) as error:
        raise CorruptFile(path, offset, expected=f"one record {_PARTITION_RECORD}", found=repr(error)) from error
    if name != _PARTITION_RECORD:
        raise CorruptFile(path, offset, expected=f"a record {_PARTITION_RECORD}", found=f"{name:.60}")
    return found


def _source(status: Mapping[str, object]) -> StoredSource:
    named, length = status["path"], status.get("length")
    assert isinstance(named, Mapping)
    uri = named["uri"]
    assert isinstance(uri, str)
    return StoredSource(uri, length if isinstance(length, int) else -1)
