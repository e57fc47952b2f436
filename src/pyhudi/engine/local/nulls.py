"""Refusing rows with nulls where none may be. All engines use it."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.write.input.source import LEAVES


def null_counts(rows: pa.Table, names: Sequence[str]) -> dict[str, int]:
    """How many nulls each of these columns has, in rows that are stored. Rows that mark a delete need no value."""
    if LEAVES in rows.column_names and any(rows.column(name).null_count for name in names):
        rows = rows.filter(pc.invert(pc.fill_null(rows.column(LEAVES), False)))
    return {name: rows.column(name).null_count for name in names}


def refuse_null_ordering(nulls: Mapping[str, int]) -> None:
    """Raise for ordering columns with nulls: a row without an ordering value cannot be compared with others."""
    _refuse(nulls, "ordering column", "a value in each row")


def refuse_null_required(nulls: Mapping[str, int]) -> None:
    """Raise for nulls in columns that the table's schema declares as never null."""
    _refuse(nulls, "column", "a value in each row, as the table's schema says")


def _refuse(nulls: Mapping[str, int], what: str, expected: str) -> None:
    for name, count in nulls.items():
        if count:
            raise Invalid(f"{what} '{name}': expected {expected}, found {count:,} null; fill it or drop these rows")
