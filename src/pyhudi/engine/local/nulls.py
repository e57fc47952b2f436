"""Refusing rows with nulls where none may be. All engines use it."""

from collections.abc import Mapping

from pyhudi.errors import Invalid


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
