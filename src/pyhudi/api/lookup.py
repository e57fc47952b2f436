"""Rows by their record keys: which file groups may hold them, by the best index that the table has."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.api import frames
from pyhudi.engine.local.input_columns import plain_rows
from pyhudi.errors import CorruptFile, Invalid, NotFound
from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import KeySpec, partition_paths, record_keys
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.format.struct_fields import find_field, with_field_columns
from pyhudi.index.bloom import metadata_survivors
from pyhudi.index.bloom_metadata import key_statistics
from pyhudi.index.bucket import BucketRule, FixedBuckets
from pyhudi.index.bucket_counts import count_by_partition, find_counts
from pyhudi.index.consistent_buckets import RingBuckets, find_ring
from pyhudi.index.key_rows import WantedFile, read_key_rows
from pyhudi.metadata.kinds.record_index import find_record_index, locate_records
from pyhudi.metadata.store.files_partition import MetadataListing
from pyhudi.metadata.store.indexes import MetadataIndexes, open_indexes
from pyhudi.options.names import canonical_name
from pyhudi.options.told_names import listed
from pyhudi.table.facts.bucket_facts import BucketFacts, facts_of_table
from pyhudi.table.read.plan import make_plan, planned_slice, select_columns
from pyhudi.table.read.stored_keys import stored_key_spec
from pyhudi.table.slices.conform import conform_array
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.schema import fits

log = logging.getLogger("pyhudi")

_Answer = TypeVar("_Answer")
KeysByPartition: TypeAlias = Mapping[str, pa.Array]
"""Partition path -> distinct keys, ascending by their bytes."""


@dataclass(frozen=True, slots=True)
class SoughtKeys:
    """Distinct record keys, ascending. `by_partition`: in which partitions to look for which; None: in all, for all."""

    keys: pa.Array
    by_partition: KeysByPartition | None = None

    def partitions(self, existing: Iterable[str]) -> list[str]:
        return [path for path in existing if self.by_partition is None or path in self.by_partition]

    def of(self, partition: str) -> pa.Array:
        return self.keys if self.by_partition is None else self.by_partition[partition]


def sought_keys(snapshot: Snapshot, keys: Any) -> SoughtKeys:
    """What a caller asks for: texts of record keys, values of the one key column, or Arrow data with the key columns.

    With all of the partition columns, where paths are made of their texts, a key is looked for in its partition only.
    Raises: Invalid.
    """
    if isinstance(keys, str | bytes | Mapping) or not (frames.is_arrow(keys) or isinstance(keys, Iterable)):
        example = f"[{keys!r}]" if isinstance(keys, str) else "['a']"
        raise Invalid(f"keys={keys!r}: expected a sequence of record keys, such as {example}, or Arrow data with them")

    spec = stored_key_spec(snapshot)
    if not frames.is_arrow(keys) or frames.is_one_column(keys):
        return SoughtKeys(_distinct(_texts_of(snapshot, spec, keys)))

    rows = plain_rows(frames.arrow_table(keys))
    if spec.makes_keys:
        raise Invalid("keys: expected texts of record keys, found rows: the table has no key columns")
    needed = spec.columns if spec.own_generator else snapshot.config.record_key
    rows = with_field_columns(rows, (name for name in spec.columns if find_field(rows.schema, name) is not None))
    missing = [name for name in needed if name not in rows.column_names]
    if missing:
        raise Invalid(f"keys: expected the key columns, found no '{missing[0]}' among {listed(rows.column_names)}")
    has_paths = bool(spec.partition_by) and not spec.time_based and set(spec.partition_by) <= set(rows.column_names)
    if snapshot.schema_text is not None:
        for name in snapshot.config.record_key:
            rows = _with_stored_type(rows, name, _type_of(snapshot, name), f"key column '{name}'")
        for name in spec.partition_by if has_paths else ():
            field = find_field(snapshot.schema, name)
            if field is not None:
                rows = _with_stored_type(rows, name, field.type, f"partition column '{name}'")

    texts = one_array(record_keys(rows, spec))
    if not has_paths:
        return SoughtKeys(_distinct(texts))

    paths = one_array(partition_paths(rows, spec))
    codes = np.asarray(paths.indices)
    by_path = {
        path: _distinct(texts.filter(pa.array(codes == number)))
        for number, path in enumerate(paths.dictionary.to_pylist())
    }
    return SoughtKeys(_distinct(texts), by_path)


def _texts_of(snapshot: Snapshot, spec: KeySpec, keys: Any) -> pa.Array:
    """Record keys as texts. Values of the table's key column are spelled as the column's are.

    Where record keys are `column:value`, a text that begins so is a record key, and any other one is a value.
    """
    columns = spec.record_key
    try:
        found = _plain(one_array(keys if isinstance(keys, pa.Array | pa.ChunkedArray) else pa.array(list(keys))))
        if pa.types.is_null(found.type) or pa.types.is_string(found.type):
            return _spelled(found.cast(pa.string()), spec)
        if spec.makes_keys or spec.own_generator or len(columns) != 1 or snapshot.schema_text is None:
            raise Invalid(
                f"keys: expected texts of record keys, found {found.type}; give texts, or rows of the key columns"
            )
        kind = _type_of(snapshot, columns[0])
        column = f"key column '{columns[0]}'"
        _refuse_others(found.type, kind, column, "texts, or ")
        values = _as_stored(found.drop_null(), kind, column)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise Invalid(
            f"keys: expected texts of record keys, or values of one key column, found others: {error}"
        ) from error
    return one_array(record_keys(pa.table({columns[0]: values}), spec))


def _plain(values: pa.Array) -> pa.Array:
    """Values without dictionaries and runs, and texts in the one layout that a table has. Raises: Invalid.

    Whole numbers keep their width: the key column's type says which of them it can hold.
    """
    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary).take(values.indices)
    if pa.types.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    if pa.types.is_null(values.type) or pa.types.is_integer(values.type):
        return values
    return one_array(plain_rows(pa.table({"keys": values})).column("keys"))


def _type_of(snapshot: Snapshot, name: str) -> pa.DataType:
    field = find_field(snapshot.schema, name)
    if field is None:
        raise Invalid(
            f"keys: table '{snapshot.config.name}' has no key column '{name}' yet; write rows that have it first"
        )
    return field.type


def _spelled(texts: pa.StringArray, spec: KeySpec) -> pa.Array:
    if not spec.is_composite or len(spec.record_key) != 1:
        return texts
    prefix = f"{spec.record_key[0]}:"
    is_key = pc.starts_with(texts, prefix)
    return pc.if_else(is_key, texts, pc.binary_join_element_wise(prefix, texts, ""))


def _refuse_others(found: pa.DataType, kind: pa.DataType, column: str, also: str) -> None:
    """Raises: Invalid for values of a type that the column has not."""
    is_number = pa.types.is_integer(found) and (pa.types.is_integer(kind) or pa.types.is_decimal(kind))
    if not is_number and not pa.types.is_null(found) and not fits(found, kind):
        raise Invalid(f"keys: expected {also}{kind} as in the {column}, found {found}")


def _with_stored_type(rows: pa.Table, name: str, kind: pa.DataType, column: str) -> pa.Table:
    """Rows whose column `name` has the table's type, since keys and paths are spelled of it."""
    given = rows.column(name)
    _refuse_others(given.type, kind, column, "")
    typed = pa.chunked_array([_as_stored(part, kind, column) for part in given.chunks], kind)
    return rows.set_column(rows.column_names.index(name), name, typed)


def _as_stored(values: pa.Array, kind: pa.DataType, column: str) -> pa.Array:
    """The values in the type of the column. Raises: Invalid for one that the type cannot hold."""
    try:
        return conform_array(values, kind, path="keys", name=column, keeps_times=True)
    except (CorruptFile, pa.ArrowException) as error:
        reason = error.found if isinstance(error, CorruptFile) else str(error)
        raise Invalid(f"keys: expected values of {kind} as in the {column}, found others: {reason}") from error


def look_up(snapshot: Snapshot, sought: SoughtKeys, options: Mapping[str, str], executor: Executor) -> pa.Table:
    """The rows of record keys, as a scan gives them; an absent key gives none.

    By the record index of the metadata table, if there is one: then only file groups that hold a key are opened. Files
    are searched where the index may lack a key: it is ahead of the snapshot where another writer commits meanwhile, and
    may be in the making. To see that takes two gets and two lists, if a key was not found. By buckets, where the table
    says that it has them. Otherwise all files of the partitions may hold them, but those that key ranges and Bloom
    filters rule out: of the metadata table, or of the footers, which are read then.
    `options`: of the handle, beside the table's own.
    """
    if not len(sought.keys):
        return _read(snapshot, sought, [], executor, partition_count=0)
    uses_metadata = isinstance(snapshot.listing, MetadataListing)
    indexes = _open_indexes(snapshot, executor) if uses_metadata else None
    located = None if indexes is None else _unless_gone(indexes, partial(_locate_surely, indexes, sought))
    if located is not None:
        wanted = _by_locations(snapshot, sought, located)
        rows = _read(snapshot, sought, wanted, executor, partition_count=len({one.file.partition for one in wanted}))
        if _count_keys(rows, PARTITION_PATH, RECORD_KEY) >= _count_located(sought, located):
            return rows
        log.info("%s: keys are not where the record index says: files are searched", snapshot.config.name)
    partitions = sought.partitions(snapshot.listing.partitions())
    wanted = _by_buckets(snapshot, sought, partitions, options)
    if snapshot.config.has_meta_fields:
        wanted = _without_others(wanted, indexes)
    return _read(snapshot, sought, wanted, executor, partition_count=len(partitions))


def _read(
    snapshot: Snapshot, sought: SoughtKeys, wanted: list[WantedFile], executor: Executor, *, partition_count: int
) -> pa.Table:
    shown = snapshot.shown_columns("snapshot")
    plan = make_plan(
        snapshot, [one.file for one in wanted],
        schema=select_columns(snapshot, None, meta_fields=True, shown=shown), predicate=None,
        where=f"record key among {len(sought.keys):,}", query="lookup", commit_times=None, partitions=partition_count,
        partitions_pruned=0, files_pruned=0, shown=shown,
    )  # fmt: skip
    virtual = None if snapshot.config.has_meta_fields else snapshot.key_spec
    return read_key_rows(snapshot.storage, plan, wanted, virtual, executor)


def _count_keys(rows: pa.Table, partition: str, key: str) -> int:
    """How many different keys, in each partition by themselves."""
    return rows.select([partition, key]).group_by([partition, key]).aggregate([]).num_rows


def _count_located(sought: SoughtKeys, located: pa.Table) -> int:
    if sought.by_partition is None:
        return _count_keys(located, "partition", "key")
    own = [located.filter(pc.equal(located.column("partition"), path)) for path in sought.by_partition]
    kept = [
        rows.filter(pc.is_in(rows.column("key"), value_set=keys))
        for rows, keys in zip(own, sought.by_partition.values(), strict=True)
    ]
    return sum(_count_keys(rows, "partition", "key") for rows in kept)


def _open_indexes(snapshot: Snapshot, executor: Executor) -> MetadataIndexes | None:
    return open_indexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone, executor=executor)


def _unless_gone(indexes: MetadataIndexes, ask: Callable[[], _Answer]) -> _Answer | None:
    """What the indexes tell; None where the table has changed meanwhile, so that their files may be gone."""
    try:
        return ask()
    except (CorruptFile, NotFound):
        if indexes.are_there():
            raise
        return None


def _locate(indexes: MetadataIndexes, sought: SoughtKeys) -> pa.Table | None:
    """Where the record index says that the keys lie; None if there is none that is ready."""
    found = find_record_index(indexes)
    if found is None or sought.by_partition is None or None in found.groups:
        return locate_records(indexes, sought.keys)
    parts = [locate_records(indexes, keys, partition=path) for path, keys in sought.by_partition.items()]
    return pa.concat_tables([part for part in parts if part is not None])


def _locate_surely(indexes: MetadataIndexes, sought: SoughtKeys) -> pa.Table | None:
    """As `_locate`; None, too, where the table has changed meanwhile, so that the index may have lacked a key."""
    located = _locate(indexes, sought)
    if located is None or _is_each_found(sought, located) or indexes.are_there():
        return located
    return None


def _is_each_found(sought: SoughtKeys, located: pa.Table) -> bool:
    if sought.by_partition is not None:
        return _count_located(sought, located) == sum(map(len, sought.by_partition.values()))
    return pc.count_distinct(located.column("key")).as_py() == len(sought.keys)


def _by_locations(snapshot: Snapshot, sought: SoughtKeys, located: pa.Table) -> list[WantedFile]:
    """The file groups that the record index names, with the keys that it names them for.

    Spec: format/indexes.md section 6. A group that is replaced or gone holds no row.
    """
    wanted: list[WantedFile] = []
    groups = located.group_by(["partition", "file_id"]).aggregate([("key", "list")])
    columns = [groups.column(name).to_pylist() for name in ("partition", "file_id")]
    keys_of = dict(zip(zip(*columns, strict=True), one_array(groups.column("key_list")), strict=True))
    for partition in sought.partitions(sorted({partition for partition, _ in keys_of})):
        for file_slice in snapshot.slices(partition):
            keys = keys_of.get((partition, file_slice.file_id))
            if keys is not None:
                here = keys.values
                own = here.filter(pc.is_in(here, value_set=sought.of(partition)))
                wanted += _wanted(file_slice, _distinct(own))
    return wanted


def _by_buckets(
    snapshot: Snapshot, sought: SoughtKeys, partitions: list[str], options: Mapping[str, str]
) -> list[WantedFile]:
    """Every slice of the partitions, but those of buckets to which no key belongs."""
    properties = {canonical_name(name): text for name, text in snapshot.config.properties.items()}
    facts = facts_of_table(snapshot.config, {**properties, **options})
    is_simple = facts is not None and facts.engine == "SIMPLE"
    rules = find_counts(snapshot.storage, snapshot.timeline) if is_simple else None
    counts = {} if rules is None else count_by_partition(rules, partitions)
    wanted: list[WantedFile] = []
    for partition in partitions:
        keys, slices = sought.of(partition), snapshot.slices(partition)
        own = (
            facts
            if facts is None or rules is None
            else replace(facts, bucket_count=counts[partition], is_stored=facts.has_stored_fields)
        )
        rule = None if own is None else _rule(snapshot, own, partition, slices, keys)
        if rule is None:
            wanted += [one for file_slice in slices for one in _wanted(file_slice, keys)]
            continue
        buckets = rule.bucket_of(keys)
        for file_slice in slices:
            bucket = rule.bucket_of_file(file_slice.file_id)
            is_known = bucket is not None and bucket < rule.bucket_count
            wanted += _wanted(file_slice, keys.filter(pa.array(buckets == bucket)) if is_known else keys)
    return wanted


def _rule(
    snapshot: Snapshot, facts: BucketFacts, partition: str, slices: list[FileSlice], keys: pa.Array
) -> BucketRule | None:
    """By which a partition's keys were placed; None where that is not certain."""
    if not snapshot.config.version.has_stable_key_hash and pc.any(pc.match_substring(keys, ":")).as_py():
        return None
    if facts.engine == "CONSISTENT_HASHING":
        ring = find_ring(
            snapshot.storage, partition, snapshot.timeline, lambda: [file_slice.file_id for file_slice in slices]
        )
        return None if ring is None else RingBuckets(ring, facts.hash_fields)
    if not facts.is_stored or facts.bucket_count is None:
        return None
    return FixedBuckets(facts.bucket_count, facts.hash_fields)


def _without_others(wanted: list[WantedFile], indexes: MetadataIndexes | None) -> list[WantedFile]:
    """Without the base files that the metadata table rules out. A slice with logs may hold a key in those alone."""
    statistics = key_statistics(indexes)
    asked = [one for one in wanted if not one.file.logs]
    if indexes is None or statistics is None or not asked:
        return wanted
    paths, keys = [one.file.path for one in asked], [one.keys for one in asked]
    left = _unless_gone(indexes, partial(metadata_survivors, statistics, paths, keys))
    if left is None:
        return wanted
    kept = [WantedFile(one.file, keys) for one, keys in zip(asked, left, strict=True) if len(keys)]
    return [one for one in wanted if one.file.logs] + kept


def _wanted(file_slice: FileSlice, keys: pa.Array) -> list[WantedFile]:
    file = planned_slice(file_slice, with_logs=True) if len(keys) else None
    return [] if file is None else [WantedFile(file, keys)]


def _distinct(keys: pa.Array) -> pa.Array:
    """Ascending by their bytes."""
    keys = pc.unique(keys).drop_null()
    return keys.take(pc.array_sort_indices(keys))
