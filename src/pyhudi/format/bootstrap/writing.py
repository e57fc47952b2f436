"""The bytes of a bootstrap index: its two HFiles, as Apache Hudi writes and reads them.

Both name all source files. They are written once, by the bootstrap, and never change. Spec: format/bootstrap.md
section 3.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from pyhudi.format.avro.container import encode_container
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.bootstrap.index import partition_key
from pyhudi.format.hfile.writer import encode_hfile

_BLOCK_BYTES = 32 << 20
"""HDFS's answer for files that have no blocks. Seen: what Hadoop tells of a local file."""


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A base file of a bootstrap and its source file.

    `partition`: of the table. `source_partition`: the source's folder, relative to the source. `uri`: of the source
    file, absolute. Units: bytes; milliseconds since the Unix epoch.
    """

    partition: str
    file_id: str
    source_partition: str
    uri: str
    size_bytes: int
    modified_ms: int


def encode_partitions_file(folder: str, files: Sequence[IndexedFile], *, epoch_ms: int) -> bytes:
    """The HFile with an entry for each partition. `folder`: the source, as the table's properties have it.

    `files`: sorted by partition and file id. Memory: all of the file.
    """
    cells = [
        (
            partition_key(partition),
            encode_container(
                schema_of("HoodieBootstrapPartitionMetadata"),
                {
                    "version": None,
                    "bootstrapPartitionPath": of_one[0].source_partition,
                    "partitionPath": partition,
                    "fileIdToBootstrapFile": {one.file_id: _status(one) for one in of_one},
                },
            ),
        )
        for partition, of_one in _by_partition(files)
    ]
    return _hfile(cells, folder, epoch_ms)


def encode_file_ids_file(folder: str, files: Sequence[IndexedFile], *, epoch_ms: int) -> bytes:
    """The HFile with an entry for each base file. Otherwise as `encode_partitions_file`."""
    cells = [
        (
            partition_key(one.partition) + f";fileid={one.file_id}".encode(),
            encode_container(
                schema_of("HoodieBootstrapFilePartitionInfo"),
                {
                    "version": None,
                    "bootstrapPartitionPath": one.source_partition,
                    "bootstrapFileStatus": _status(one),
                    "partitionPath": one.partition,
                },
            ),
        )
        for one in files
    ]
    return _hfile(cells, folder, epoch_ms)


def _by_partition(files: Iterable[IndexedFile]) -> Iterable[tuple[str, list[IndexedFile]]]:
    return ((partition, list(of_one)) for partition, of_one in groupby(files, attrgetter("partition")))


def _hfile(cells: list[tuple[bytes, bytes]], folder: str, epoch_ms: int) -> bytes:
    """Seen: 0.15.0, 1.0.2 and 1.2.0 compress nothing, and state no schema."""
    record: dict[str, object] = {
        "version": 1, "bootstrapBasePath": folder, "createdTimestamp": epoch_ms, "numKeys": len(cells)
    }  # fmt: skip
    info = {"INDEX_INFO": encode_container(schema_of("HoodieBootstrapIndexInfo"), record)}
    return encode_hfile(sorted(cells), schema_text=None, compression="NONE", file_info=info)


def _status(file: IndexedFile) -> dict[str, object]:
    """What Hadoop tells of a file. Seen: 1.0.2 and 1.2.0 leave permission, owner and group out."""
    return {
        "version": None,
        "path": {"version": 1, "uri": file.uri},
        "length": file.size_bytes,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": _BLOCK_BYTES,
        "modificationTime": file.modified_ms,
        "accessTime": file.modified_ms,
        "permission": None,
        "owner": None,
        "group": None,
        "symlink": None,
    }
