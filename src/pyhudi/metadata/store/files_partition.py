"""The `files` partition: which partitions a table has and which files lie in them."""

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache, cached_property, partial
from itertools import chain, pairwise
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.by_content import ByContent
from pyhudi.errors import CorruptFile, NotFound, Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.files import FILES_COLUMNS, decode_files, merge_files
from pyhudi.format.metadata.groups import FILES
from pyhudi.format.metadata.record import (
    PARTITIONS_KEY,
    files_key,
    partition_of_key,
)
from pyhudi.metadata.derive.changes import binary_keys
from pyhudi.metadata.derive.changes_files import files_cells
from pyhudi.metadata.store.partition import MetadataPartition, open_partition
from pyhudi.metadata.store.slice_records import Keys, SliceReader, open_slice
from pyhudi.metadata.store.table import MetadataTable, find_metadata_table, is_same_metadata_table
from pyhudi.metadata.store.versions import RecordVersions
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.listing import FileListing, ListedFile, StorageListing
from pyhudi.table.view.snapshot import Snapshot, read_config
from pyhudi.timeline.active import Timeline
from pyhudi.versions import TableVersion

log = logging.getLogger("pyhudi")

_Answer = TypeVar("_Answer")

ALL_FILES: Final = pa.schema(
    [("partition", pa.dictionary(pa.int32(), pa.string())), ("name", pa.string()), ("size", pa.int64())]
)

_LOOKUP_SHARE_MAX: Final = 8
_LOOKUP_COUNT_MAX: Final = 64
"""Partitions of a large listing are looked up one by one up to one in `_LOOKUP_SHARE_MAX`, and up to
`_LOOKUP_COUNT_MAX`. Beyond that all of the listing is read.
"""

_REOPENED_MAX: Final = 3
"""So often a query opens the metadata table anew because another call has replaced it."""


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries of several records, tombstones included. `bounds`: where each key's entries start and end."""

    names: pa.Array
    sizes: pa.Array
    is_deleted: pa.Array
    bounds: Mapping[str, tuple[int, int]]

    def of(self, key: str) -> "_Entries":
        start, end = self.bounds[key]
        names, sizes, gone = (column.slice(start, end - start) for column in self.columns)
        return _Entries(names, sizes, gone, {key: (0, end - start)})

    @property
    def columns(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        return self.names, self.sizes, self.is_deleted

    def live_of(self, numbers: Mapping[str, int]) -> pa.Table:
        """The entries of these keys that are no tombstones, as `FILES_COLUMNS`. `record`: the key's number."""
        sizes = [end - start for start, end in self.bounds.values()]
        records = np.repeat(np.array([numbers.get(key, -1) for key in self.bounds], np.int32), sizes)
        assert len(records) == len(self.names)
        columns = [pa.array(records), *self.columns]
        there = pa.array((records >= 0) & ~self.is_deleted.to_numpy(zero_copy_only=False))
        return pa.Table.from_arrays(columns, schema=FILES_COLUMNS).filter(there)

    def live(self) -> tuple[pa.Array, pa.Array]:
        """Names and sizes of the entries that are no tombstones."""
        if not self.is_deleted.true_count:
            return self.names, self.sizes
        mask = pc.invert(self.is_deleted)
        return self.names.filter(mask), self.sizes.filter(mask)


@cache
def _nothing() -> _Entries:
    return _Entries(pa.array([], pa.string()), pa.array([], pa.int64()), pa.array([], pa.bool_()), {})  # brings pandas


class MetadataListing:
    """The file listing that the metadata table gives.

    Requests: two lists; for a small listing a get for each of its files. Of a large listing a few partitions are looked
    up one by one, each with a request; when many are asked for, everything is read.
    Memory: the entries that were read, about 100 bytes a file. Only the files of the partition that is asked for become
    objects.
    """

    source = "metadata table"

    def __init__(self, partition: MetadataPartition) -> None:
        self._partition = partition
        self._looked_up: dict[str, _Entries] = {}
        self._loaded: dict[str, _Entries] | None = None

    @property
    def is_whole(self) -> bool:
        """As of `ListedPartition`."""
        return self._partition.is_whole

    def partitions(self) -> list[str]:
        return list(self._partitions)

    def files(self, partition: str) -> list[ListedFile]:
        names, sizes = self._entries(files_key(partition)).live()
        return [ListedFile(name, size) for name, size in sorted(zip(names.to_pylist(), sizes.to_pylist(), strict=True))]

    def expect(self, partitions: Iterable[str]) -> None:
        self._look_up(map(files_key, partitions))

    def all_files(self) -> pa.Table:
        """Every file of every partition, as `ALL_FILES`, in no order. Makes no object for a file."""
        partitions = self.partitions()
        entries = self._live({files_key(partition): number for number, partition in enumerate(partitions)})
        named = pa.DictionaryArray.from_arrays(one_array(entries.column("record")), pa.array(partitions, pa.string()))
        return pa.Table.from_arrays([named, entries.column("name"), entries.column("size")], schema=ALL_FILES)

    def live_cells(self, *, table_version: TableVersion, base_file: str) -> pa.Table:
        """Every record, merged and without tombstones, as `CELLS` of a base file of this name; ascending by key."""
        keys = sorted(self._load())
        entries = self._live({key: number for number, key in enumerate(keys)})
        entries = entries.set_column(1, "name", entries.column("name").cast(pa.large_string()))  # may be many bytes
        entries = entries.take(pc.sort_indices(entries.column("record")))  # stable: within a record as they are
        every_key = binary_keys(pa.array(keys, pa.string()))
        return files_cells(every_key, entries, table_version=table_version, base_file=base_file)

    def _live(self, numbers: Mapping[str, int]) -> pa.Table:
        """The entries of these keys that are no tombstones, as `FILES_COLUMNS`. `record`: the key's number."""
        parts = [entries.live_of(numbers) for entries in {id(one): one for one in self._load().values()}.values()]
        return pa.concat_tables([FILES_COLUMNS.empty_table(), *parts])

    @cached_property
    def _partitions(self) -> list[str]:
        names, _ = self._entries(PARTITIONS_KEY).live()
        return sorted(map(partition_of_key, names.to_pylist()))

    @cached_property
    def _readers(self) -> tuple[SliceReader, ...]:
        partition = self._partition
        return tuple(open_slice(partition.storage, file_slice, partition.is_visible) for file_slice in partition.slices)

    def _entries(self, key: str) -> _Entries:
        self._look_up([key])
        if self._loaded is None:
            return self._looked_up[key]
        return self._loaded[key].of(key) if key in self._loaded else _nothing()

    def _look_up(self, keys: Iterable[str]) -> None:
        """Bring in the entries of these keys: by look-ups, or by reading everything."""
        fresh = () if self._loaded is not None else sorted({key for key in keys if key not in self._looked_up})
        if not fresh:
            return

        if not self._is_worth_looking_up(fresh):
            self._load()
            return

        wanted = Keys(pa.array([key.encode() for key in fresh]))
        found = _entries_by_key(part for reader in self._readers for part in reader.read(wanted))
        self._looked_up.update({key: found[key].of(key) if key in found else _nothing() for key in fresh})

    def _is_worth_looking_up(self, fresh: Sequence[str]) -> bool:
        stored = [reader.base for reader in self._readers if reader.base is not None]
        if all(base.is_in_memory for base in stored):
            return False

        lookups_max = min(sum(base.entry_count for base in stored) // _LOOKUP_SHARE_MAX, _LOOKUP_COUNT_MAX)
        return fresh == [PARTITIONS_KEY] or len(self._looked_up) + len(fresh) <= lookups_max

    def _load(self) -> dict[str, _Entries]:
        if self._loaded is None:
            contents = [reader.content for reader in self._readers]
            known = tuple(content for content in contents if content is not None)
            self._loaded = self._merged() if len(known) < len(contents) else _merged.get(known, self._merged)
            self._looked_up = {}
        return self._loaded

    def _merged(self) -> dict[str, _Entries]:
        return _entries_by_key(chain.from_iterable(reader.read() for reader in self._readers))


_merged: ByContent[tuple[tuple[Hashable, ...], ...], dict[str, _Entries]] = ByContent(
    64 << 20, lambda _, entries: sum(200 + len(key) + 120 * (of[1] - of[0]) for key, of in _bounds(entries))
)
"""Small listings that were read before, by the files that they were merged from."""


def _bounds(entries: Mapping[str, _Entries]) -> Iterator[tuple[str, tuple[int, int]]]:
    return ((key, held.bounds[key]) for key, held in entries.items())


class _FollowingListing(MetadataListing):
    """The listing of a snapshot. If another call takes the metadata table away meanwhile, or makes it anew, this one
    goes on with the listing that the table has by then, still as of the snapshot's timeline.

    `instead`: that listing; None where the metadata table is the same, so that what was not found is damage.
    """

    def __init__(self, partition: MetadataPartition, instead: Callable[[], FileListing | None]) -> None:
        super().__init__(partition)
        self._instead = instead
        self._other: FileListing | None = None

    def partitions(self) -> list[str]:
        return self._follow(super().partitions, lambda other: other.partitions())

    def files(self, partition: str) -> list[ListedFile]:
        return self._follow(partial(super().files, partition), lambda other: other.files(partition))

    def expect(self, partitions: Iterable[str]) -> None:
        expected = list(partitions)
        self._follow(partial(super().expect, expected), lambda other: other.expect(expected))

    def _follow(self, own: Callable[[], _Answer], others: Callable[[FileListing], _Answer]) -> _Answer:
        if self._other is None:
            try:
                return own()
            except (CorruptFile, NotFound):
                self._other = self._instead()
                if self._other is None:
                    raise
        return others(self._other)


def _listing_instead(
    table: MetadataTable, storage: Storage, timeline: Timeline, zone: tzinfo, reopened: int
) -> FileListing | None:
    """The listing of a metadata table that is there instead of this one, or the storage's where there is none any more.

    None where the metadata table is the same. `reopened`: how often this was done for one snapshot. The storage's
    listing ends it: that of a metadata table that changes again and again may never be whole.
    """
    config = read_config(storage)
    if config.has_metadata_table and is_same_metadata_table(table, storage, zone):
        return None
    if reopened == _REOPENED_MAX:
        return StorageListing(storage, nests=config.may_nest_partitions)
    log.info("%s: the metadata table has changed meanwhile: the files are listed anew", storage.location.uri)
    return open_listing(storage, config, timeline, zone, reopened=reopened + 1)


def open_listing(
    storage: Storage, config: TableConfig, timeline: Timeline, zone: tzinfo, *, reopened: int = 0
) -> FileListing:
    """The metadata table's listing. The storage's for a table without one, and while a restore is under way.

    `reopened`: as in `_listing_instead`.
    """
    if not config.has_metadata_table or timeline.pending_restores:
        return StorageListing(storage, nests=config.may_nest_partitions)

    table = find_metadata_table(storage, zone)
    if table is not None:
        files = open_partition(table, FILES, timeline)
        instead = partial(_listing_instead, table, storage, timeline, zone, reopened)
        other = None if files.slices and files.is_whole else instead()
        if other is not None:
            return other
        if files.slices:
            return _FollowingListing(files, instead)

    if storage.location.uri not in _told:
        _told.add(storage.location.uri)
        log.warning("%s: %s", storage.location.uri, _GONE)
    return FreshListing(storage, nests=config.may_nest_partitions)


_told: set[str] = set()
"""The tables that this process has warned of. Each call reads a table several times, and one warning is enough."""
_GONE = (
    "the properties name a metadata table, of which the list of files is gone; the storage is listed instead, "
    "and the next write makes the metadata table anew"
)


def is_metadata_table_gone(snapshot: Snapshot) -> bool:
    """Whether the properties name a metadata table whose list of files cannot be read.

    Makes no request if the metadata table gave the snapshot's listing.
    """
    if not snapshot.config.has_metadata_table or snapshot.listing.source != StorageListing.source:
        return False
    if isinstance(snapshot.listing, FreshListing):
        return True

    try:
        table = find_metadata_table(snapshot.storage, snapshot.zone)
    except (CorruptFile, Unsupported):  # damaged, not gone: whoever reads it says so
        return False
    return table is None or not table.slices(FILES)


class FreshListing(StorageListing):
    """The storage's own listing, taken because the metadata table that the properties name is gone."""


def read_files_partition(table: MetadataTable, data_timeline: Timeline) -> MetadataListing:
    """The `files` partition as of the data table's timeline.

    Blocks of deltacommits whose data action has not completed are left out.
    Spec: format/metadata-table.md section 10.
    """
    return MetadataListing(open_partition(table, FILES, data_timeline))


def _entries_by_key(parts: Iterable[RecordVersions]) -> dict[str, _Entries]:
    """Key -> the entries that hold those of its record, with all of its versions merged.

    A record of one version needs no merging, and stays as it is.
    """
    found: dict[str, _Entries] = {}
    for part in parts:
        if not len(part):
            continue

        keys = part.keys.cast(pa.string())
        group = np.cumsum(part.starts) - 1
        is_alone = (np.bincount(group) == 1)[group]

        several: list[pa.Table] = []
        for text, positions, values in part.by_schema():
            alone = pa.array(is_alone[positions])
            _add_alone(found, keys.take(pa.array(positions)).filter(alone), values.filter(alone), text, part.path)
            if alone.true_count != len(alone):
                several.append(
                    _with_positions(positions[~is_alone[positions]], values.filter(pc.invert(alone)), text, part.path)
                )

        if several:
            _add_merged(found, keys, pa.concat_tables(several))
    return found


def _add_alone(found: dict[str, _Entries], keys: pa.Array, values: pa.Array, text: str, path: str) -> None:
    decoded = decode_files(values, text, path=path)
    records = one_array(decoded.column("record")).to_numpy()
    bounds = np.searchsorted(records, np.arange(len(keys) + 1)).tolist()
    entries = _of_columns(decoded, dict(zip(keys.to_pylist(), pairwise(bounds), strict=True)))
    found.update(dict.fromkeys(entries.bounds, entries))


def _with_positions(positions: npt.NDArray[np.int64], values: pa.Array, text: str, path: str) -> pa.Table:
    """The entries of these values, each with the position of its record as `position`."""
    decoded = decode_files(values, text, path=path)
    positions = positions[one_array(decoded.column("record")).to_numpy()]
    return decoded.append_column("position", pa.array(positions)).drop_columns(["record"])


def _add_merged(found: dict[str, _Entries], keys: pa.Array, entries: pa.Table) -> None:
    # A key whose entries cancel out is known as well: it has no file.
    emptied = keys.take(one_array(pc.unique(entries.column("position")))).to_pylist()
    found.update({key: _Entries(*_nothing().columns, {key: (0, 0)}) for key in emptied})

    entries = entries.take(pc.sort_indices(entries.column("position")))
    of_entry = keys.take(one_array(entries.column("position")))
    merged = merge_files(entries.drop_columns(["position"]).add_column(0, "key", of_entry))
    of_merged = one_array(merged.column("key"))

    bounds: dict[str, tuple[int, int]] = {}
    runs = pc.run_end_encode(of_merged)
    start = 0
    for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        bounds[key] = (start, end)
        start = end

    held = _of_columns(merged, bounds)
    found.update(dict.fromkeys(bounds, held))


def _of_columns(table: pa.Table, bounds: Mapping[str, tuple[int, int]]) -> _Entries:
    names, sizes, gone = (one_array(table.column(name)) for name in ("name", "size", "is_deleted"))
    return _Entries(names, sizes, gone, bounds)
