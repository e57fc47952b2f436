"""Clauses of a merge whose rows have one side only: their names are those of that side, also where both sides have one.

`WHEN NOT MATCHED` has the source's columns, `WHEN NOT MATCHED BY SOURCE` the table's, as in Spark's own MERGE.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError

from pyhudi.errors import Invalid
from pyhudi.sql.changes import Match, Merge, MergeClause
from pyhudi.sql.words import quoted_name


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a merge. `columns`: names in small letters."""

    what: str
    alias: str
    columns: frozenset[str]


def name_sides(merge: Merge, target_columns: Collection[str], source_columns: Collection[str]) -> Merge:
    """The merge, whose one-sided clauses say before each column which side it is of.

    Raises: Invalid where such a clause names a column of the other side.
    """
    target = Side("the table", merge.alias, frozenset(map(str.lower, target_columns)))
    source = Side("the source", merge.source_alias, frozenset(map(str.lower, source_columns)))
    sides = {Match.NOT_MATCHED: (source, target), Match.BY_SOURCE: (target, source)}
    return replace(
        merge,
        clauses=tuple(
            _named(clause, *sides[clause.match]) if clause.match in sides else clause for clause in merge.clauses
        ),
    )


def _named(clause: MergeClause, own: Side, other: Side) -> MergeClause:
    what = f"MERGE … {clause.match.value}"
    return replace(
        clause,
        condition=None if clause.condition is None else with_side(clause.condition, own, other, what=what),
        assigned=None if clause.assigned is None else tuple(
            replace(one, value=with_side(one.value, own, other, what=what)) for one in clause.assigned
        ),
    )  # fmt: skip


def with_side(text: str, own: Side, other: Side, *, what: str) -> str:
    """An expression, whose columns without a side get the one that its rows have.

    Names within subqueries stay as they are, and so does a text that only Spark can read.
    Example: `upper(name)` of source `s` gives ``upper(`s`.name)``.
    """
    try:
        expression = parse_one(text, dialect=Spark)
    except (ParseError, TokenError):
        return text
    places = []
    for column in expression.find_all(exp.Column):
        if column.find_ancestor(exp.Query):
            continue
        first, *others = column.parts
        name = first.name.lower()
        if others and name == own.alias.lower():
            continue
        if (others and name == other.alias.lower()) or (name in other.columns and name not in own.columns):
            raise Invalid(
                f"{what}: expected columns of {own.what} '{own.alias}', found '{column.sql(dialect=Spark)}' of "
                f"{other.what} '{other.alias}', which has no row there"
            )
        if name in own.columns and "start" in first.meta:
            places.append(first.meta["start"])
    for place in sorted(places, reverse=True):
        text = f"{text[:place]}{quoted_name(own.alias)}.{text[place:]}"
    return text
