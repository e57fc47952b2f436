"""New rows of a merge: their keys must be new, or they would replace rows that the merge did not match."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import partition_paths, record_keys
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
    *,
    is_global: bool,
    find_stored: FindStored,
) -> list[pa.RecordBatch]:
    """The rows, once it is sure that each makes a new row of the table.

    Stored keys are looked up only where `on` leaves it open whether there is a row of the same key.
    Raises: Invalid for two rows of one key, and for a key that is stored.
    """
    if not len(rows):
        return []
    names = _names_of(rows, snapshot, is_global=is_global)
    if pc.count_distinct(names).as_py() < len(names):
        counts = pc.value_counts(names)
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
        raise Invalid(
            f"when_not_matched_insert: expected one row of the source for each new record key of table "
            f"'{snapshot.config.name}', found several for '{_shown(twice)}'; make the source's rows distinct"
        )
    if not _tells_new(snapshot, on, clauses, is_global=is_global):
        stored = find_stored(snapshot, one_array(record_keys(rows, snapshot.key_spec)).unique())
        _refuse_stored(names, stored, snapshot, is_global=is_global)
    return rows.to_batches()


def _names_of(rows: pa.Table, snapshot: Snapshot, *, is_global: bool) -> pa.Array:
    """What tells rows of the table apart: their record keys, within their partitions."""
    spec = snapshot.key_spec
    keys = one_array(record_keys(rows, spec))
    if is_global or not spec.partition_by:
        return keys
    paths = one_array(partition_paths(rows, spec)).cast(pa.string())
    return pc.binary_join_element_wise(paths, keys, "\0")


def _refuse_stored(names: pa.Array, stored: pa.Table, snapshot: Snapshot, *, is_global: bool) -> None:
    if not len(stored):
        return
    if RECORD_KEY not in stored.column_names:
        found = _names_of(stored, snapshot, is_global=is_global)
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


def _tells_new(snapshot: Snapshot, on: Condition, clauses: Sequence[Clause], *, is_global: bool) -> bool:
    """Whether a row of the source that matched nothing cannot have the record key of a stored row.

    So it is where rows match if their keys are equal, or their keys and partitions, and nothing else is asked for. A
    key generator of the user's may make one key of different columns.
    """
    config, equal = snapshot.config, on.equal_columns
    if snapshot.key_spec.own_generator:
        return False
    allowed = {*config.record_key, *(() if is_global else config.partition_by)}
    paired = {path[0] for path in equal if len(path) == 1}
    if on.rest is not None or len(equal) < len(on.equal) or not set(config.record_key) <= paired <= allowed:
        return False
    for clause in clauses:
        values = {one.field.name: one.value for one in clause.assigned or ()}
        for name in paired:
            value, source = values.get(name), equal[name,]
            if not isinstance(value, Column) or on.sides.path(value) != on.sides.path(source):
                return False
    return True
