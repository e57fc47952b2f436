"""Small tables of the driver as DataFrames. They cost no job, because their rows are part of the plan."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

INLINE_ROWS_MAX = 2_000

Cell = str | int | list[int] | list[str]


def small_table(spark: SparkSession, rows: Sequence[tuple[Cell, ...]], schema: str) -> DataFrame:
    """The rows as a DataFrame with a schema such as `path string, task int`. There must be at least one row.

    Up to `INLINE_ROWS_MAX` rows are literals of the plan; more rows are sent as data.
    """
    assert rows
    if len(rows) > INLINE_ROWS_MAX:
        return spark.createDataFrame(list(rows), schema)
    fields = [field.split(" ") for field in schema.split(", ")]
    names = ", ".join(name for name, _ in fields)
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in fields)  # an empty list has no type
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return spark.sql(f"SELECT {typed} FROM VALUES {values} AS small_table({names})")


def _literal(cell: Cell) -> str:
    match cell:
        case str():
            return f"CAST(X'{cell.encode().hex()}' AS STRING)"  # hex digits need no quoting
        case int():
            return str(cell)
        case list():
            return f"array({', '.join(map(_literal, cell))})"
