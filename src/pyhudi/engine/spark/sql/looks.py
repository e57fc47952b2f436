"""Looks at rows that are kept, before a join with them is planned."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.spark.write.keys import quoted


def is_small(rows: DataFrame, *, most: int) -> bool:
    """Whether there are at most so many rows. One job, which stops there."""
    return rows.limit(most + 1).count() <= most


def distinct_values(rows: DataFrame, names: Sequence[str], *, most: int) -> dict[str, list[object]] | None:
    """The distinct values of columns but for nulls; None for more than `most`, or for a missing column. One job."""
    known = {name.lower(): name for name in rows.columns}
    if any(name.lower() not in known for name in names):
        return None
    columns = [f.col(quoted(known[name.lower()])) for name in names]
    found = rows.select(*columns).distinct().limit(most + 1).collect()
    if len(found) > most:
        return None
    return {name: sorted({row[at] for row in found if row[at] is not None}, key=repr) for at, name in enumerate(names)}


def has_gaps(rows: DataFrame, names: Sequence[str]) -> bool:
    """Whether a row has a null or an empty text in one of some columns. One job, or none without columns."""
    found = [f.coalesce(f.col(quoted(name)).cast("string"), f.lit("")) == "" for name in names]
    return bool(found) and not rows.where(reduce(or_, found)).isEmpty()


def groups_where(rows: DataFrame, by: str, condition: str) -> list[tuple[str, bool, bool]] | None:
    """The values of a column, each with whether a condition holds for all of its rows, and whether for some.

    None for a condition on columns that the rows do not have. The rows are read once.
    """
    try:
        found = rows.groupBy(by).agg(f.expr(f"bool_and({condition})"), f.expr(f"bool_or({condition})")).collect()
    except AnalysisException:
        return None
    return [tuple(row) for row in found]
