"""Refusing rows that cannot be settled, on every engine alike."""

from collections.abc import Mapping

from pyhudi.errors import Invalid


def refuse_null_ordering(nulls: Mapping[str, int]) -> None:
    """Raise for ordering columns with nulls: a row without an ordering value cannot be settled."""
    for name, count in nulls.items():
        if count:
            raise Invalid(
                f"ordering column '{name}': expected a value in each row, found {count:,} null; fill the column or "
                "drop these rows"
            )


def refuse_null_required(nulls: Mapping[str, int]) -> None:
    """Raise for nulls in columns that the table's schema declares as never null."""
    for name, count in nulls.items():
        if count:
            raise Invalid(
                f"column '{name}': expected a value in each row, as the table's schema says, found {count:,} null; fill "
                "the column or drop these rows"
            )
