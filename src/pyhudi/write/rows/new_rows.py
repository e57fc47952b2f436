"""New rows of a merge: their keys must be new, or they would replace rows that the merge did not match."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import (
    DEFAULT_PARTITION,
    EMPTY_COMPONENT,
    NULL_COMPONENT,
    KeySpec,
    partition_paths,
    record_keys,
)
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.predicate.nodes import Column
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.rows.clauses import Clause
from pyhudi.write.rows.sides import Condition

FindStored: TypeAlias = Callable[[Snapshot, pa.Array], pa.Table]
"""The stored rows of these record keys, with the meta fields where the table has them."""


def new_rows(
    rows: pa.Table,
    snapshot: Snapshot,
    on: Condition,
    clauses: Sequence[Clause],
    spec: KeySpec,
    *,
    is_global: bool,
    find_stored: FindStored,
) -> list[pa.RecordBatch]:
    """The rows, once it is sure that each makes a new row of the table.

    Stored keys are looked up only where `on` leaves it open whether there is a row of the same key. `spec`: how the
    write spells keys and paths.
    Raises: Invalid for two rows of one key, and for a key that is stored.
    """
    if not len(rows):
        return []
    names = _names_of(rows, spec, is_global=is_global)
    if pc.count_distinct(names).as_py() < len(names):
        counts = pc.value_counts(names)
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
        raise Invalid(
            f"when_not_matched_insert: expected one row of the source for each new record key of table "
            f"'{snapshot.config.name}', found several for '{_shown(twice)}'; make the source's rows distinct"
        )
    paired = _paired_by(snapshot, on, clauses, is_global=is_global)
    doubted = None if paired is None else _in_doubt(rows, spec, paired)
    sought = rows if doubted is None else rows.filter(doubted)
    if len(sought):
        stored = find_stored(snapshot, one_array(record_keys(sought, spec)).unique())
        _refuse_stored(names, stored, snapshot, spec, is_global=is_global)
    return rows.to_batches()


def _names_of(rows: pa.Table, spec: KeySpec, *, is_global: bool) -> pa.Array:
    """What tells rows of the table apart: their record keys, within their partitions."""
    keys = one_array(record_keys(rows, spec))
    if is_global or not spec.partition_by:
        return keys
    paths = one_array(partition_paths(rows, spec)).cast(pa.string())
    return pc.binary_join_element_wise(paths, keys, "\0")


def _refuse_stored(names: pa.Array, stored: pa.Table, snapshot: Snapshot, spec: KeySpec, *, is_global: bool) -> None:
    if not len(stored):
        return
    if RECORD_KEY not in stored.column_names:
        found = _names_of(stored, spec, is_global=is_global)
    elif is_global or not snapshot.key_spec.partition_by:
        found = one_array(stored.column(RECORD_KEY))
    else:
        columns = (one_array(stored.column(name)) for name in (PARTITION_PATH, RECORD_KEY))
        found = pc.binary_join_element_wise(*columns, "\0")
    clash = names.filter(pc.is_in(names, value_set=found))
    if len(clash):
        raise Invalid(
            f"when_not_matched_insert: expected record keys that table '{snapshot.config.name}' does not have, found "
            f"'{_shown(clash[0].as_py())}', whose row did not match; match rows by their record key in on=…"
        )


def _shown(name: str) -> str:
    path, _, key = name.rpartition("\0")
    return f"{key}' in partition '{path}" if path else key


def _paired_by(
    snapshot: Snapshot, on: Condition, clauses: Sequence[Clause], *, is_global: bool
) -> frozenset[str] | None:
    """The columns of a row's name that a stored row must have equal to be its pair; None: another thing is asked, too.

    So it is where rows match if their keys are equal, or their keys and partitions, and nothing else is asked for. A
    key generator of the user's may make one key of different columns.
    """
    config, equal = snapshot.config, on.equal_columns
    if snapshot.key_spec.own_generator:
        return None
    allowed = {*config.record_key, *(() if is_global else config.partition_by)}
    paired = {path[0] for path in equal if len(path) == 1}
    if on.rest is not None or len(equal) < len(on.equal) or not set(config.record_key) <= paired <= allowed:
        return None
    for clause in clauses:
        values = {one.field.name: one.value for one in clause.assigned or ()}
        for name in paired:
            value, source = values.get(name), equal[name,]
            if not isinstance(value, Column) or on.sides.path(value) != on.sides.path(source):
                return None
    return frozenset(paired)


def _in_doubt(rows: pa.Table, spec: KeySpec, paired: frozenset[str]) -> pa.Array:
    """Which rows may have the name of a stored row, though their values equal none of its.

    Null equals nothing, and null and empty text are one partition. A path of time stands for many times. `a/b` and `c`
    make the path of `a` and `b/c`, and texts with commas may make the key of others.
    """
    doubted = pa.repeat(pa.scalar(False), len(rows))
    for name in paired:
        column = one_array(rows.column(name))
        is_time = pa.types.is_timestamp(column.type) and spec.has_logical_timestamps
        if name in (*spec.time_based, *spec.sql_times) or is_time:
            return pa.repeat(pa.scalar(True), len(rows))
        doubted = pc.or_(doubted, pc.is_null(column))
        if not pa.types.is_string(column.type):
            continue
        stand_ins = pa.array(["", DEFAULT_PARTITION, NULL_COMPONENT, EMPTY_COMPONENT])
        doubted = pc.or_(doubted, pc.is_in(column, value_set=stand_ins))
        for parts, separator in ((spec.record_key, ","), (spec.partition_by, "/")):
            if name in parts and len(parts) > 1:
                doubted = pc.or_(doubted, pc.fill_null(pc.match_substring(column, separator), True))
    return doubted
