"""The committed files of a table, as the storage lists them, in Arrow columns."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.names import BASE_FILE_PATTERN, LOG_FILE_PATTERN
from pyhudi.table.view.file_system_view import LogSlicing
from pyhudi.table.view.listing import StorageListing
from pyhudi.timeline.active import Timeline
from pyhudi.versions import LogNaming


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Files of a partition: names (string, ascending) and sizes in bytes (int64)."""

    partition: str
    names: pa.Array
    sizes: pa.Array

    def by_name(self) -> dict[str, int]:
        return dict(zip(self.names.to_pylist(), self.sizes.to_pylist(), strict=True))


def committed_files(listing: StorageListing, timeline: Timeline, slicing: LogSlicing) -> Iterator[PartitionFiles]:
    """For each partition, the files whose instants are completed. There may be none.

    If logs are named after their slice, all logs count: readers tell from the blocks what is committed. Empty logs do
    not, as a writer leaves them that dies before it has written. Seen: Apache Hudi reads no list of files that says of
    one that it is empty (0.15.0, 1.0.2, 1.2.0; `validatePayload` of the metadata table's records).
    Requests: as `StorageListing.walk`. Memory: a partition's files.
    """
    for partition, every in listing.walk():
        files = [file for file in every if file.name.isascii() or _is_text(file.name)]
        names = pa.array([file.name for file in files], pa.string())
        sizes = pa.array([file.size_bytes for file in files], pa.int64())
        logged = _group_of(names, LOG_FILE_PATTERN, "instant")
        # An empty base file counts: whoever reads it says that it is damaged.
        is_empty_log = pc.and_(logged.is_valid(), pc.equal(sizes, 0))
        counts = pc.and_not(_are_committed(names, logged, timeline, slicing), is_empty_log)
        yield PartitionFiles(partition, names.filter(counts), sizes.filter(counts))


def _is_text(name: str) -> bool:
    """Whether a name is valid UTF-8, as the names of all data and log files are."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _are_committed(names: pa.Array, logged: pa.Array, timeline: Timeline, slicing: LogSlicing) -> pa.Array:
    """`logged`: the instants in the names of logs, null for other names."""
    instants = pc.coalesce(_group_of(names, BASE_FILE_PATTERN, "requested"), logged)
    distinct = pc.unique(instants).drop_null().to_pylist()
    committed = pa.array([instant for instant in distinct if timeline.is_committed(instant)], pa.string())
    counts = pc.is_in(instants, value_set=committed)
    return pc.or_(counts, logged.is_valid()) if slicing.naming is LogNaming.AFTER_SLICE else counts


def _group_of(names: pa.Array, pattern: str, group: str) -> pa.Array:
    """The text that a group of the pattern matches in each name. Null if the whole name does not match."""
    return pc.struct_field(pc.extract_regex(names, f"^(?:{pattern})$"), group)
