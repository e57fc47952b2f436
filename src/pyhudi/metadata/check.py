"""Comparing what the metadata table says of files with what the storage holds.

Spec: what Apache Hudi's metadata table validator compares, but file by file: where names and sizes agree, so do
the base files, file groups and file slices that are made of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyhudi.format.log.source import MemoryLog
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.model.versions import LogNaming
from pyhudi.storage.protocol import Storage
from pyhudi.table.config import TableConfig
from pyhudi.table.listing import FileListing, ListedFile
from pyhudi.table.slice_log import slice_blocks
from pyhudi.timeline.active import Timeline


class DifferenceKind(StrEnum):
    """What is wrong, as seen from the metadata table."""

    GONE = "the index itself is gone: the next write drops it, build_index makes it anew"
    PARTITION_MISSING = "partition missing from the metadata table"
    PARTITION_ABSENT = "partition is not in the storage"
    FILE_MISSING = "file missing from the metadata table"
    FILE_ABSENT = "file is not in the storage"
    SIZE = "size differs"
    RECORD_MISSING = "record missing from the metadata table"
    RECORD_VALUE = "record says otherwise"
    RECORD_COUNT = "number of records differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing on which the metadata table and the data disagree.

    `metadata_partition`: the part of the metadata table that says it. `partition`: of the data; `name`: a file, or
    the key of a record. `stored`, `known`: what the data and the metadata table say, as text.
    """

    metadata_partition: str
    kind: DifferenceKind
    partition: str
    name: str = ""
    stored: str = ""
    known: str = ""


@dataclass(frozen=True)
class CommittedFiles:
    """Which stored files a reader may see, so that the metadata table must know them."""

    storage: Storage
    config: TableConfig
    timeline: Timeline

    def is_committed(self, partition: str, name: str) -> bool:
        """Whether a completed action wrote the file. A log of before version 8, whose name does not say it, is read."""
        base = BaseFileName.parse(name)
        if base is not None:
            return self.timeline.is_committed(base.requested)
        log = LogFileName.parse(name)
        if log is None:
            return False
        if self.config.version.log_naming is LogNaming.AFTER_WRITE:
            return self.timeline.is_committed(log.instant)
        path = join(partition, name)
        content = self.storage.get(path)
        logs = [(path, MemoryLog(content), len(content))]
        return bool(slice_blocks(logs, self.timeline.is_committed))


def files_differences(
    stored: FileListing,
    known: FileListing,
    committed: CommittedFiles,
    *,
    on_progress: Callable[[int, int], None],
) -> Iterator[Difference]:
    """Every partition and file on which storage and metadata table disagree, by partition and name.

    Files of actions that have not completed are none of the metadata table's; partitions that hold nothing else
    neither. Requests: the storage's listing, and one get a log of version 6 that the metadata table does not know.
    """
    of_storage, of_metadata = set(stored.partitions()), set(known.partitions())
    everywhere = sorted(of_storage | of_metadata)
    for done, partition in enumerate(everywhere):
        there = {file.name: file.size_bytes for file in _data_files(stored.files(partition))}
        listed = {file.name: file.size_bytes for file in known.files(partition)}
        missing = [name for name in there.keys() - listed.keys() if committed.is_committed(partition, name)]
        if partition not in of_metadata and missing:
            yield Difference("files", DifferenceKind.PARTITION_MISSING, partition)
        if partition not in of_storage and not there:
            yield Difference("files", DifferenceKind.PARTITION_ABSENT, partition)
        yield from _file_differences(partition, there, listed, missing)
        on_progress(done + 1, len(everywhere))


def _file_differences(
    partition: str, there: Mapping[str, int], listed: Mapping[str, int], missing: Iterable[str]
) -> Iterator[Difference]:
    found = [Difference("files", DifferenceKind.FILE_MISSING, partition, name, f"{there[name]:,}") for name in missing]
    for name, size_bytes in listed.items():
        if name not in there:
            found.append(Difference("files", DifferenceKind.FILE_ABSENT, partition, name, known=f"{size_bytes:,}"))
        elif there[name] != size_bytes:
            found.append(
                Difference("files", DifferenceKind.SIZE, partition, name, f"{there[name]:,}", f"{size_bytes:,}")
            )
    yield from sorted(found, key=lambda difference: difference.name)


def _data_files(files: Iterable[ListedFile]) -> Iterator[ListedFile]:
    return (f for f in files if BaseFileName.parse(f.name) is not None or LogFileName.parse(f.name) is not None)
