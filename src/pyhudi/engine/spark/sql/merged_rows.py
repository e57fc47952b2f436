"""The rows of a merge, made of the pairs of its join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pyhudi.engine.spark.sql.stored_as import REFUSED, from_text, not_less, stored_as
from pyhudi.engine.spark.write.keys import quoted
from pyhudi.errors import Invalid
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY

KIND: Final = "__pyhudi_kind"
"""A column of the pairs: the number of the clause that takes a pair; null where none does."""

NO_CLAUSE: Final = -1
"""The kind of a pair that matches, and that no clause takes."""

IS_NEW: Final = "__pyhudi_is_new"
"""A column of the rows: whether a row is a new one."""

_OLD: Final = "__pyhudi_old_"
_NEW: Final = "__pyhudi_new_"


@dataclass(frozen=True, slots=True)
class ClauseValues:
    """A clause: SQL text of the columns that it sets, over the pairs. `what`: names it in messages."""

    what: str
    values: Mapping[str, str]
    is_insert: bool
    is_delete: bool
    is_matched: bool


@dataclass(frozen=True, slots=True)
class MergeShape:
    """The table of a merge. `alias`: its name in the pairs. `columns`: its own, in order.

    `stays`: columns whose values a change must leave, each with the way out. `named_by`: columns that tell rows apart.
    `made_keys`: how keys begin that are made up for new rows; None where rows have keys of their own. `leaves`: the
    name of the column that marks deletes. `path`: the name of the column of the paths that rows stay in; empty where
    rows do not store them. `partition_by`: the columns that paths are made of. `texts_in_paths`: of those of which
    many values share a path. `settles_new_rows`: of several new rows of a key the greatest is stored.
    `not_less`: ordering columns that a change must not make less.
    """

    table_name: str
    alias: str
    columns: tuple[t.StructField, ...]
    stays: Mapping[str, str]
    record_key: tuple[str, ...]
    named_by: tuple[str, ...]
    made_keys: str | None
    leaves: str
    path: str
    partition_by: tuple[str, ...]
    texts_in_paths: Mapping[str, Column]
    allows_several_matches: bool
    settles_new_rows: bool
    not_less: tuple[str, ...]


def pair_columns(clauses: Sequence[ClauseValues], shape: MergeShape) -> list[str]:
    """The columns of the pairs beside `KIND`, as SQL text: what is stored, and what each clause sets.

    They stand in the query of the join, behind `KIND`, which they name: there the statement's WITH clauses, moments and
    names mean the same as in its conditions.
    """
    alias = quoted(shape.alias)
    old = [f"{alias}.{quoted(name)} AS {quoted(_OLD + name)}" for name in _stored_names(shape)]
    structs = [
        f"CASE WHEN {KIND} = {at} THEN named_struct("
        + ", ".join(f"'c{n}', {value}" for n, value in enumerate(clause.values.values()))
        + f") END AS {_NEW}{at}"
        for at, clause in enumerate(clauses)
        if clause.values
    ]
    return old + structs


def merged_rows(pairs: DataFrame, clauses: Sequence[ClauseValues], shape: MergeShape) -> DataFrame:
    """The rows to write: new, changed, and those to delete, with the columns `shape.leaves` and `IS_NEW`.

    `pairs`: with `KIND` and `pair_columns`. Values are cast by store assignment, each clause's by itself. A value that
    does not fit, a key that would change and a row that is matched twice are errors when they are met.
    """
    typed = _typed(pairs.where(f.col(KIND).isNotNull()), clauses, shape)
    rows = typed.select(
        f.col(KIND),
        *(column.alias(name) for name, column in _finals(clauses, shape).items()),
        *([_key(clauses, shape)] if shape.made_keys is not None else []),
        *([_path(clauses, shape)] if shape.path else []),
        _chosen(clauses, lambda clause, _: f.lit(clause.is_delete)).alias(shape.leaves),
    )
    checked = _checked(rows, clauses, shape)
    is_new = f.col(KIND).isin([at for at, clause in enumerate(clauses) if clause.is_insert])
    return checked.where(f.col(KIND) != NO_CLAUSE).withColumn(IS_NEW, is_new).drop(KIND)


def refuse_stored(rows: DataFrame, stored: DataFrame, shape: MergeShape) -> None:
    """Raises: Invalid where a new row has the key of a stored row that it did not match."""
    names = list(shape.named_by)
    naming = _naming(shape)
    mine = rows.where(f.col(IS_NEW)).select(*(column.alias(name) for name, column in naming.items()))
    theirs = stored.select(*(column.alias(_OLD + name) for name, column in naming.items()))
    is_same = [f.col(quoted(name)).eqNullSafe(f.col(quoted(_OLD + name))) for name in names]
    clash = mine.join(theirs, reduce(and_, is_same), "left_semi").limit(1).collect()
    if clash:
        shown = ", ".join(f"{name}={clash[0][name]!r}" for name in names)
        raise Invalid(
            f"MERGE … NOT MATCHED THEN INSERT: expected record keys that table '{shape.table_name}' does not have, "
            f"found {shown}, whose row did not match; match rows by their record key in ON"
        )


def _naming(shape: MergeShape) -> dict[str, Column]:
    """What tells rows apart. Empty texts and nulls lie in the same partition, and so do the times of a day, where paths
    tell days.
    """
    texts = {field.name for field in shape.columns if isinstance(field.dataType, t.StringType)}
    plain = {
        name: f.nullif(f.col(quoted(name)), f.lit("")) if name in texts - set(shape.record_key) else f.col(quoted(name))
        for name in shape.named_by
    }
    return {**plain, **{name: text for name, text in shape.texts_in_paths.items() if name not in shape.record_key}}


def _stored_names(shape: MergeShape) -> list[str]:
    """The columns whose stored values a merge needs."""
    names = [field.name for field in shape.columns]
    names += [RECORD_KEY] if shape.made_keys is not None else []
    return [*names, PARTITION_PATH] if shape.path else names


def _typed(pairs: DataFrame, clauses: Sequence[ClauseValues], shape: MergeShape) -> DataFrame:
    """The pairs with the old value of each column, and each clause's new ones, cast to the table's types."""
    names = _stored_names(shape)
    types = {field.name: field.dataType for field in shape.columns}
    wanted = [pairs.schema[KIND], *(pairs.schema[_OLD + name] for name in names)]
    flat = [f.col(KIND), *(f.col(quoted(_OLD + name)) for name in names)]
    for at, clause in enumerate(clauses):
        for n, name in enumerate(clause.values):
            wanted.append(t.StructField(_new_name(at, clause, name), types[name]))
            flat.append(f.col(f"{_NEW}{at}.c{n}").alias(_new_name(at, clause, name)))
    plain = pairs.select(*flat)
    found_types = {field.name: field.dataType for field in plain.schema.fields}
    texts = [
        from_text(field.name, found_types[field.name], field.dataType, what=field.name) if " " in field.name
        else f.col(quoted(field.name))
        for field in wanted
    ]  # fmt: skip
    return stored_as(plain.select(*texts), wanted, table_name=shape.table_name, by_name=False)


def _new_name(at: int, clause: ClauseValues, name: str) -> str:
    """The name of a new value, as messages show it."""
    return f"{clause.what} {name} (clause {at + 1})"


def _finals(clauses: Sequence[ClauseValues], shape: MergeShape) -> dict[str, Column]:
    """The columns of the rows by their names. A change that makes a row less is an error where it may be none."""
    finals = {field.name: _final(field, clauses, shape) for field in shape.columns}
    if not shape.not_less:
        return finals
    first = shape.not_less[0]
    new = {name: finals[name] for name in shape.not_less}
    old = {name: f.col(quoted(_OLD + name)) for name in shape.not_less}
    kind = next(field.dataType for field in shape.columns if field.name == first)
    return {**finals, first: not_less(new, old, kind, what=f"merge in table '{shape.table_name}'")}


def _final(field: t.StructField, clauses: Sequence[ClauseValues], shape: MergeShape) -> Column:
    """A column of the rows: the clause's value, null in a new row without one, otherwise what is stored."""
    old = f.col(quoted(_OLD + field.name))

    def value(clause: ClauseValues, at: int) -> Column:
        if field.name not in clause.values:
            return f.lit(None).cast(field.dataType) if clause.is_insert else old
        new = f.col(quoted(_new_name(at, clause, field.name)))
        if clause.is_insert or field.name not in shape.stays:
            return new
        message = f.concat(
            f.lit(
                f"{REFUSED}{clause.what}: column '{field.name}' says which row of table '{shape.table_name}' it is, "
                "and stays; expected "
            ),
            f.coalesce(old.cast("string"), f.lit("NULL")),
            f.lit(", found "),
            f.coalesce(new.cast("string"), f.lit("NULL")),
            f.lit(f"; leave the column out, or {shape.stays[field.name]}"),
        )
        return f.when(new.eqNullSafe(old), old).otherwise(f.raise_error(message).cast(field.dataType))

    return _chosen(clauses, value, otherwise=old)


def _key(clauses: Sequence[ClauseValues], shape: MergeShape) -> Column:
    """The record key of tables without key columns: the stored one, or a new one."""
    old = f.col(quoted(_OLD + RECORD_KEY))
    made = f.concat_ws(
        "_",
        f.lit(shape.made_keys),
        f.spark_partition_id().cast("string"),
        f.monotonically_increasing_id().cast("string"),
    )
    is_new = [at for at, clause in enumerate(clauses) if clause.is_insert]
    return f.when(f.col(KIND).isin(is_new), made).otherwise(old).alias(RECORD_KEY) if is_new else old.alias(RECORD_KEY)


def _path(clauses: Sequence[ClauseValues], shape: MergeShape) -> Column:
    """The partition path that a row stays in; null in a new row, and in one with a new value of a partition column."""
    path = f.col(quoted(_OLD + PARTITION_PATH))

    def value(clause: ClauseValues, at: int) -> Column:
        if clause.is_insert:
            return f.lit(None).cast("string")
        same = path
        for name in shape.partition_by:
            if name in clause.values:
                new = f.col(quoted(_new_name(at, clause, name)))
                same = f.when(new.eqNullSafe(f.col(quoted(_OLD + name))), same)
        return same

    return _chosen(clauses, value, otherwise=path).alias(shape.path)


def _chosen(clauses, value, otherwise: Column | None = None) -> Column:  # type: ignore[no-untyped-def]
    column = None
    for at, clause in enumerate(clauses):
        is_own = f.col(KIND) == at
        one = value(clause, at)
        column = f.when(is_own, one) if column is None else column.when(is_own, one)
    assert column is not None
    return column.otherwise(f.lit(False) if otherwise is None else otherwise)


def _checked(rows: DataFrame, clauses: Sequence[ClauseValues], shape: MergeShape) -> DataFrame:
    """The rows, of which each key may occur once. Its rows are shuffled by their keys; others are not."""
    matched = [at for at, clause in enumerate(clauses) if clause.is_matched]
    new = [at for at, clause in enumerate(clauses) if clause.is_insert]
    looks_at_new = bool(new) and shape.made_keys is None and not shape.settles_new_rows
    looks_at_matched = bool(matched) and not shape.allows_several_matches
    if not looks_at_new and not looks_at_matched:
        return rows
    same = Window.partitionBy(*_naming(shape).values())
    is_matched = f.col(KIND).isin([*matched, NO_CLAUSE])
    matches = f.count(f.when(is_matched, 1)).over(same)
    news = f.count(f.when(f.col(KIND).isin(new), 1)).over(same) if looks_at_new else f.lit(0)
    shown = f.concat_ws(", ", *(f.concat(f.lit(f"{n}="), f.col(quoted(n)).cast("string")) for n in shape.named_by))
    several = f.concat(
        f.lit(
            f"{REFUSED}MERGE INTO {shape.table_name}: expected at most one row of the source for each row of the "
            "table, found several for the row with "
        ),
        shown,
        f.lit("; nothing was written. Make the source's rows distinct, or tell them apart in ON"),
    )
    doubled = f.concat(
        f.lit(
            f"{REFUSED}MERGE INTO {shape.table_name}: expected one row of the source for each new record key, found "
            "several for "
        ),
        shown,
        f.lit("; nothing was written. Make the source's rows distinct"),
    )
    leaves = f.col(shape.leaves)
    checked = f.when(matches > 1, f.raise_error(several).cast("boolean")).when(
        news > 1, f.raise_error(doubled).cast("boolean")
    )
    return rows.withColumn(shape.leaves, checked.otherwise(leaves))
