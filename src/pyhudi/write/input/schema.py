"""The input's columns against the table's: checked before the first byte, both sides shown.

An input may add columns and widen types; the table then has them from this commit on. Files that are not written
again keep what they have, and readers conform it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import (
    META_FIELDS,
    can_promote,
    canonical_arrow,
    refuse_names_alike,
    required_columns,
    typed_nulls,
)
from pyhudi.format.schema.evolution import evolve_avro
from pyhudi.format.struct_fields import column_around, find_field, find_fields
from pyhudi.format.time_units import are_same_times
from pyhudi.merge.marks import has_mark
from pyhudi.merge.rules import IS_DELETED, MergeRules
from pyhudi.options.told_names import listed, nearest_name
from pyhudi.write.settings import WriteSettings

SPELLING = {pa.int32(): (pa.int64(),)}
"""What a key or partition column may become: types that spell every old value as before."""

EXACT = {pa.int32(): (pa.int64(), pa.float64()), pa.float32(): (pa.float64(),)}
"""What an ordering column may become: types in which two different values stay different."""

_CAST, _RENAME, _LEAVE_OUT = "cast what has another type", "rename what is misspelled", "leave out what is new"
_GIVE = "give what is missing"
_FILL = f"{_GIVE}, or have nulls there by hoodie.write.set.null.for.missing.columns=true"
"""What cures an input that does not fit."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The table that the input must fit. `keys`: record key and partition columns; `ordering`: ordering columns."""

    name: str
    schema_text: str
    schema: pa.Schema
    keys: tuple[str, ...]
    ordering: tuple[str, ...]

    @property
    def marks_deletes(self) -> str | None:
        """The column that marks a row as a delete. Its name alone gives it this meaning, in every table."""
        return IS_DELETED if has_mark(self.schema) else None


def carries_some_columns(incoming: pa.Schema, table: TableColumns, settings: WriteSettings) -> bool:
    """Whether an input has only some of the table's columns, and is to be written so.

    It must have no new column: beside a missing column, a new one may be the same column misspelled.
    Raises: Invalid for an input that lacks a key, partition or ordering column, or one that is never null.
    """
    given = {name for name in incoming.names if name not in META_FIELDS}
    takes_some = settings.fills_missing_columns or settings.drops_missing_columns
    if takes_some or not given < set(table.schema.names):
        return False

    needed = {
        **dict.fromkeys(required_columns(table.schema_text), "column, which is never null,"),
        **dict.fromkeys(table.ordering, "ordering column"),
        **dict.fromkeys(table.keys, "key or partition column"),
    }
    lacking = [f"{what} '{name}'" for name, what in needed.items() if column_around(name) not in given]
    if lacking:
        raise Invalid(
            f"input does not fit table '{table.name}': an upsert may have some of the columns, but needs the key, "
            f"partition and ordering columns and those that are never null; missing: {listed(lacking)}"
        )
    return True


def refuse_unreadable_parts(incoming: pa.Schema, table: TableColumns, rules: MergeRules) -> None:
    """Refuse rows with only some columns where they could not be merged as they should.

    This concerns a table whose rules make one row of two, and a table that marks deletes by a column.

    Seen: where rows have only some columns, 1.2.0 passes over the table's partial-update mode.

    Seen: 1.0.2 and 1.2.0 look for the mark of such rows at its position in whole rows. Their compactions lose rows of
    Parquet blocks and fail on Avro blocks, also of blocks that their own MERGE INTO wrote.
    Raises: Unsupported.
    """
    if not rules.wins_whole:
        raise Unsupported(
            f"table '{table.name}': expected all columns in an upsert, as its rules of merging make one row of two "
            "whole ones, found some; give whole rows, or hoodie.write.set.null.for.missing.columns for nulls"
        )

    mark = table.marks_deletes or next((mark.column for mark in rules.marks), None)
    if mark is None:
        return

    missing = listed([f"'{name}'" for name in table.schema.names if name not in incoming.names])
    raise Unsupported(
        f"table '{table.name}': expected all columns in an upsert, as the table has '{mark}', found {missing} "
        "missing; Apache Hudi 1.x loses rows that came with some of the columns when it compacts such a table. Give "
        "whole rows, or hoodie.write.set.null.for.missing.columns for nulls"
    )


def evolved_schema(
    incoming: pa.Schema, table: TableColumns, settings: WriteSettings, *, is_partial: bool = False
) -> str:
    """The table's schema with this input's columns in it, as Avro text. The text stays as it is where nothing changes.

    Meta fields in the input are passed over. `is_partial`: missing columns are left as they are.
    Raises: Invalid for columns that are missing; for columns whose type neither widens to the table's nor from it; for
    new columns that are never null. The message names the first of them.
    """
    refuse_doubled(incoming)
    given = canonical_arrow(typed_nulls(without_meta(incoming), table.schema))

    check = _Comparison(table, settings)
    stored = [field for field in table.schema if not is_partial or field.name in given.names]
    columns = {field.name: field for field in check.members(list(given), stored, "")}
    if is_partial:
        columns = {field.name: columns.get(field.name, field) for field in table.schema}

    if check.problems:
        raise _unfit(table.name, check.problems)
    return evolve_avro(table.schema_text, pa.schema(columns.values()), optional=frozenset(check.missing))


def columns_for_delete(
    incoming: pa.Schema, table: pa.Schema, *, needed: Sequence[str], ordering: Sequence[str], table_name: str
) -> pa.Schema:
    """The key and partition columns, and the ordering columns where the input has all of them."""
    refuse_doubled(incoming)
    extra = [name for name in ordering if name not in needed]
    names = [*needed, *(extra if all(find_field(incoming, name) is not None for name in ordering) else ())]

    missing = [name for name in needed if find_field(incoming, name) is None]
    if missing:
        raise Invalid(
            f"delete from table '{table_name}': expected the key and partition columns ({', '.join(needed)}), "
            f"found no '{missing[0]}' among {listed(incoming.names)}"
        )

    wanted = find_fields(table, names)
    given = canonical_arrow(typed_nulls(find_fields(incoming, wanted.names), wanted))
    problems = {
        f"column '{found.name}': expected {field.type}, found {found.type}": _CAST
        for found, field in zip(given, wanted, strict=True)
        if not fits(found.type, field.type)
    }
    if problems:
        raise _unfit(table_name, problems)
    return wanted


def _unfit(table_name: str, problems: Mapping[str, str]) -> Invalid:
    """The error for columns that do not fit. `problems`: each with what cures it."""
    cures = ", ".join(dict.fromkeys(problems.values()))
    return Invalid(f"input does not fit table '{table_name}': {listed(problems, '; ')}; {cures}")


def first_schema(incoming: pa.Schema) -> pa.Schema:
    """The columns that a table gets by its first write."""
    refuse_doubled(incoming)
    schema = canonical_arrow(without_meta(incoming))
    if not schema.names:
        raise Invalid("input: expected columns, found none")
    refuse_names_alike(schema)
    return schema


def refuse_doubled(incoming: pa.Schema) -> None:
    doubled = sorted(name for name, count in Counter(incoming.names).items() if count > 1)
    if doubled:
        raise Invalid(f"input: expected distinct column names, found '{doubled[0]}' twice")


def refuse_unread_mark(incoming: pa.Schema) -> None:
    """Raises: Invalid for `_hoodie_is_deleted` of a type in which nobody reads it. Seen: Apache Hudi refuses it."""
    at = incoming.get_field_index(IS_DELETED)
    if at < 0 or pa.types.is_null(incoming.field(at).type):  # nulls, which take the table's type
        return
    found = canonical_arrow(pa.schema([incoming.field(at)])).field(0).type
    if not pa.types.is_boolean(found):
        raise Invalid(
            f"input: column '{IS_DELETED}' marks rows to delete: expected bool, found {found}; cast it, or give the "
            "column another name"
        )


def refuse_unordered_types(schema: pa.Schema, ordering: Sequence[str]) -> None:
    """Raises: Invalid for an ordering column of lists, structs or maps: none of two such values is the greater."""
    for name in ordering:
        if name in schema.names and pa.types.is_nested(schema.field(name).type):
            raise Invalid(
                f"ordering column '{name}' of type {schema.field(name).type}: expected values that compare: numbers, "
                "text, dates or timestamps; order by another column"
            )


def without_meta(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in META_FIELDS])


def fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type can be stored as the other: by Avro's promotions, or as a decimal of more digits.

    Bytes do not fit text: some bytes could not be read back from it. Timestamps fit timestamps of another unit: a value
    that the unit cannot hold is refused when rows are taken.
    """
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        given = {field.name: field.type for field in found}
        return set(given) == {f.name for f in wanted} and all(fits(given[f.name], f.type) for f in wanted)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return fits(found.value_type, wanted.value_type)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return fits(found.key_type, wanted.key_type) and fits(found.item_type, wanted.item_type)
    if pa.types.is_decimal(found) and pa.types.is_decimal(wanted):
        whole = wanted.precision - wanted.scale >= found.precision - found.scale
        return bool(whole and wanted.scale >= found.scale)
    if pa.types.is_binary(found) and pa.types.is_string(wanted):
        return False
    if are_same_times(found, wanted):
        return True
    return found == wanted or (not pa.types.is_nested(found) and can_promote(found, wanted))


def widens(stored: pa.DataType, found: pa.DataType) -> bool:
    """Whether a column may become what the input has: by the promotions of numbers, or text to bytes.

    Seen: Apache Hudi 1.0.2 also turns numbers into text, so that one input of texts changes a column of numbers for
    good. Here that takes a cast.
    """
    return not pa.types.is_nested(stored) and not pa.types.is_decimal(stored) and fits(stored, found)


def is_within_another(path: str) -> bool:
    """Whether a field lies in a struct, list or map.

    Seen: Apache Hudi 1.0.2 takes a wider type for such a field, and then fails on older files, its own too ("Nested
    types with type changes cannot be read in vectorized mode"). So types do not change there; new fields are taken.
    """
    return "." in path


class _Comparison:
    """One walk along the input's fields and the table's. `missing`: paths of table fields that become optional;
    `dropped`: of those that the table loses.

    `problems`: what does not fit, one text each, and what cures it.
    """

    def __init__(self, table: TableColumns, settings: WriteSettings) -> None:
        self._settings = settings
        self._pinned: Mapping[str, Mapping[pa.DataType, tuple[pa.DataType, ...]]] = {
            **dict.fromkeys(table.ordering, EXACT),
            **dict.fromkeys(table.keys, SPELLING),
        }
        self._required = frozenset(required_columns(table.schema_text))
        self._takes_some = settings.fills_missing_columns or settings.drops_missing_columns
        self.problems: dict[str, str] = {}
        self.missing: list[str] = []
        self.dropped: list[str] = []

    def _tell(self, problem: str, cure: str) -> None:
        self.problems[problem] = cure

    def members(self, found: list[pa.Field], stored: list[pa.Field], path: str) -> list[pa.Field]:
        """The fields of the table, or of a struct in it, changed so that the input's fields fit in."""
        given = {field.name: field for field in found}
        lacking = [field for field in stored if field.name not in given]
        added = [field for field in found if field.name not in {one.name for one in stored}]
        for field in lacking:
            self._note_missing(field, path, [one.name for one in added])

        made = [
            field.with_type(self._type(given[field.name].type, field.type, f"{path}{field.name}"))
            if field.name in given
            else field.with_nullable(True)
            for field in stored
            if field.name in given or f"{path}{field.name}" not in self.dropped
        ]
        return [*made, *self._added(added, stored, path, beside_missing=bool(lacking))]

    def _note_missing(self, field: pa.Field, path: str, added: list[str]) -> None:
        where = f"{path}{field.name}"
        if self._settings.fills_missing_columns and where not in self._pinned:
            if not field.nullable or where in self._required:
                self.missing.append(where)
            return
        if self._settings.drops_missing_columns and where not in self._pinned:
            self.dropped.append(where)
            return
        near = nearest_name(field.name, added)
        found = f" (found '{path}{near}')" if near else ""
        remedy = _RENAME if near else _GIVE if where in self._pinned else _FILL
        self._tell(f"column '{where}' ({field.type}) is missing{found}", remedy)

    def _added(
        self, added: list[pa.Field], stored: list[pa.Field], path: str, *, beside_missing: bool
    ) -> list[pa.Field]:
        """The new fields.

        If fields are missing beside them, they are a problem: they may be these under another name.
        """
        folded = {field.name.lower(): field.name for field in stored}
        refuse_names_alike(pa.schema(added), path)

        for field in added:
            where = f"{path}{field.name}"
            alike = folded.setdefault(field.name.lower(), field.name)
            if alike != field.name:
                said = f"column '{where}' ({field.type}) differs from column '{path}{alike}' by capital letters only"
                self._tell(said, _RENAME)
            elif beside_missing and not self._takes_some:
                self._tell(f"column '{where}' ({field.type}) is not in the table", _LEAVE_OUT)
            elif not (field.nullable or self._settings.makes_new_columns_nullable or where == IS_DELETED):
                self._tell(
                    f"column '{where}' ({field.type}, never null) is not in the table, whose rows have no value for it",
                    "let new columns be null, or set hoodie.datasource.write.new.columns.nullable=true",
                )

        return [field.with_nullable(True) for field in added]

    def _type(self, found: pa.DataType, stored: pa.DataType, path: str) -> pa.DataType:
        """The type that the table's field has from now on."""
        if pa.types.is_struct(found) and pa.types.is_struct(stored):
            return pa.struct(self.members(list(found), list(stored), f"{path}."))
        if pa.types.is_list(found) and pa.types.is_list(stored):
            item = stored.value_field
            return pa.list_(item.with_type(self._type(found.value_type, item.type, f"{path}.element")))
        if pa.types.is_map(found) and pa.types.is_map(stored):
            item = stored.item_field
            return pa.map_(stored.key_type, item.with_type(self._type(found.item_type, item.type, f"{path}.value")))

        if fits(found, stored):
            return stored

        reason = ""
        if widens(stored, found):
            if found not in self._pinned.get(path, {stored: (found,)}).get(stored, ()):
                reason = ", which would change how rows are keyed or ordered"
            elif is_within_another(path):
                reason = ", which Apache Hudi cannot read within structs, lists and maps"
            else:
                return found
        self._tell(f"column '{path}': expected {stored}, found {found}{reason}", _CAST)
        return stored
