"""What a merge does with rows: clauses as the caller gives them, and as they are carried out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import one_array
from pyhudi.predicate import Predicate, parse_predicate
from pyhudi.predicate.assignments import Assignment
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.rows.changes import parse_assignments
from pyhudi.write.rows.sides import Sides, column_text


@dataclass(frozen=True, slots=True)
class When:
    """A clause of a merge with a condition of its own.

    `where`: the rows that it takes, as SQL text or a `pyarrow.compute.Expression`; None: all. `set`: column -> value;
    True or None: every column as the source has it. A delete has no `set`.
    """

    where: Any | None = None
    set: Mapping[str, Any] | Literal[True] | None = None


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """What the caller gives for each kind of row; None: rows of this kind are left alone."""

    matched_update: Any = None
    matched_delete: Any = None
    not_matched_insert: Any = None
    by_source_update: Any = None
    by_source_delete: Any = None

    def __post_init__(self) -> None:
        if not any(_listed(getattr(self, name)) for name in self.__dataclass_fields__):
            raise Invalid(
                "merge: expected at least one clause, such as when_matched_update={'n': 'source.n'}, found none"
            )


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause, ready to be carried out. `where` None: all rows. `assigned` None: a delete."""

    where: Predicate | None
    assigned: tuple[Assignment, ...] | None
    what: str

    def takes(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        return pa.repeat(pa.scalar(True), len(rows)) if self.where is None else self.where.mask(rows)

    def values(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """The new values of the assigned columns."""
        return {one.field.name: one.values(rows) for one in self.assigned or ()}


def parse_clauses(
    update: Any, delete: Any, *, what: str, sides: Sides, schema: pa.Schema, snapshot: Snapshot, has_source: bool
) -> list[Clause]:
    """The clauses for one kind of row, in the order in which they are tried.

    Those with a condition first; of these and of the others deletes first. `schema`: the columns that they may name.
    `has_source`: whether rows of this kind have a row of the source, so that `True` means its columns.
    Raises: Invalid, Unsupported.
    """
    return [
        Clause(
            _condition(one.when.where, one.what, schema),
            None if one.deletes else tuple(_assigned(one, sides, snapshot, schema)),
            one.what,
        )
        for one in given_clauses(update, delete, what=what, has_source=has_source)
    ]


@dataclass(frozen=True, slots=True)
class GivenClause:
    """A clause as a caller gives it. `what`: its name in messages, such as `when_matched_delete`."""

    when: When
    what: str
    deletes: bool


def given_clauses(update: Any, delete: Any, *, what: str, has_source: bool) -> list[GivenClause]:
    """The clauses for one kind of row, in the order of `parse_clauses`, whose arguments these are.

    Raises: Invalid for a delete that sets values, for every column of a source that such rows do not have, and for two
    clauses without a condition.
    """
    to_set = f"{what}_{'insert' if what.endswith('not_matched') else 'update'}"
    found = [
        *(GivenClause(_as_delete(one, f"{what}_delete"), f"{what}_delete", True) for one in _listed(delete)),
        *(GivenClause(_as_update(one, to_set, has_source=has_source), to_set, False) for one in _listed(update)),
    ]
    free = [one.what for one in found if one.when.where is None]
    if len(free) > 1:
        raise Invalid(
            f"merge: expected at most one clause without a condition for the same rows, found {free[0]} and {free[1]}; "
            "give one of them a condition: pyhudi.When(where='…', set={…})"
        )
    return sorted(found, key=lambda one: one.when.where is None)


def clause_masks(clauses: Sequence[Clause], rows: pa.RecordBatch) -> list[pa.BooleanArray]:
    """For each clause the rows that it takes: each row goes to the first clause that takes it."""
    left, masks = pa.repeat(pa.scalar(True), len(rows)), []
    for clause in clauses:
        taken = pc.and_(left, clause.takes(rows))
        masks.append(one_array(taken))
        left = pc.and_not(left, taken)
    return masks


def _listed(given: Any) -> list[Any]:
    if given is None or given is False:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _as_delete(given: Any, what: str) -> When:
    """A delete as a caller gives it: True, a condition, or a `When`. Raises: Invalid for one that sets values."""
    if not isinstance(given, When):
        return When(None if given is True else given)
    if given.set is not None:
        raise Invalid(f"{what}: expected no values to set in a delete, found {given.set!r}")
    return given


def _as_update(given: Any, what: str, *, has_source: bool) -> When:
    """An update or insert as a caller gives it: True, `"*"`, values, or a `When`. `set` True: every column.

    Raises: Invalid for every column of a source that rows of this kind do not have.
    """
    takes_all = given is True or (isinstance(given, str) and given == "*")
    clause = given if isinstance(given, When) else When(None, True if takes_all else given)
    if clause.set is not None and clause.set is not True:
        return clause
    if not has_source:
        raise Invalid(f"{what}: expected columns and their values, found none: these rows have none in the source")
    return When(clause.where, True)


def _assigned(given: GivenClause, sides: Sides, snapshot: Snapshot, schema: pa.Schema) -> Sequence[Assignment]:
    values = given.when.set
    if values is True:
        names, table = snapshot.schema.names, snapshot.config.name
        values = all_columns(sides.source.names, sides.source_alias, names, table, given.what)
    return parse_assignments(values, snapshot, schema, what=given.what)


def all_columns(
    source: Sequence[str], source_alias: str, columns: Sequence[str], table_name: str, what: str
) -> dict[str, str]:
    """Each column of the table, with the text of the source's column of this name.

    Raises: Invalid for a column that the source lacks.
    """
    own = {name.lower(): name for name in source}
    missing = [name for name in columns if name.lower() not in own]
    if missing:
        raise Invalid(
            f"{what}: expected every column of table '{table_name}' in the source, found no '{missing[0]}'; say which "
            f"columns get which values: {{'{columns[0]}': 'source.…'}}"
        )
    return {name: column_text(source_alias, own[name.lower()]) for name in columns}


def _condition(where: Any, what: str, schema: pa.Schema) -> Predicate | None:
    if where is None:
        return None
    try:
        return parse_predicate(where, schema)
    except Invalid as error:
        raise Invalid(f"{what}: {error}") from error
