"""The `where` of a scan, parsed and ready to filter Arrow data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.told_names import listed
from pyhudi.predicate.evaluate import evaluate
from pyhudi.predicate.nodes import Node, columns_in

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, slots=True)
class Predicate:
    """Which rows to keep, as a typed tree of Spark SQL, as an Arrow expression, or None for all rows.

    `columns`: the top-level columns that the predicate reads, spelled as in the schema it was parsed for. Data to be
    filtered must have these columns, in any order and among others.
    """

    condition: Node | pc.Expression | None
    columns: frozenset[str]
    text: str
    schema: pa.Schema

    def __str__(self) -> str:
        return self.text

    @property
    def portable_text(self) -> str:
        """The text in a form that every supported Spark reads alike."""
        from pyhudi.predicate.syntax import portable_text  # imports sqlglot, which tasks do not need

        return portable_text(self.text)

    def mask(self, rows: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
        """For each row, whether it is kept. A row for which the predicate is NULL is not kept.

        Raises: Invalid for a value of which an Arrow expression, or a cast of dates, can make none.
        """
        if self.condition is None:
            return pa.repeat(pa.scalar(True), rows.num_rows)
        if isinstance(self.condition, pc.Expression):
            return _expression_mask(self.condition, rows)
        batches = [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches()
        masks = [pc.fill_null(evaluate(self.condition, batch), False) for batch in batches]
        return pa.concat_arrays(masks) if masks else pa.array([], pa.bool_())

    def filter(self, rows: Rows) -> Rows:
        """The kept rows, in their order."""
        return rows if self.condition is None else rows.filter(self.mask(rows))


def _expression_mask(expression: pc.Expression, rows: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    import pyarrow.dataset as ds  # imports pandas if it is installed, so not at the top

    scanner = ds.InMemoryDataset(table).scanner(columns={"mask": expression})
    try:
        mask = scanner.to_table().column("mask").combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Invalid(f"where {expression}: {error}") from error
    return pc.fill_null(mask.cast(pa.bool_()), False)


def parse_predicate(where: str | pc.Expression | None, schema: pa.Schema) -> Predicate:
    """A predicate over data of this schema.

    Raises: Invalid for what Spark refuses too, such as an unknown column; Unsupported for SQL that Spark
    would accept. Both name the position in the text.
    """
    if where is None:
        return Predicate(condition=None, columns=frozenset(), text="", schema=schema)
    if isinstance(where, pc.Expression):
        require_names(where, "where")
        return Predicate(where, _expression_columns(where, schema), str(where), schema)
    if not isinstance(where, str):
        raise Invalid(f"where: expected text or a pyarrow.compute.Expression, found {type(where).__name__}")
    from pyhudi.predicate.resolve import parse_text  # imports sqlglot, which tasks do not need

    root = parse_text(where, schema)
    return Predicate(root, frozenset(column.path[0] for column in columns_in(root)), where, schema)


@contextmanager
def told_as(what: str) -> Iterator[None]:
    """Errors of what is parsed within say `what` where they say `where`: the argument that the text was given as."""
    try:
        yield
    except (Invalid, Unsupported) as error:
        raise type(error)(f"{what} {str(error).removeprefix('where ')}") from error


def require_names(expression: pc.Expression, what: str) -> None:
    """Raises: Invalid for a column by its position, `pc.field(0)`: rows are read with the columns that are needed.

    Seen: PyArrow 24 to 26 do not serialize such an expression, and print the position as `FieldPath(0)`.
    """
    try:
        expression.__reduce__()
    except pa.ArrowNotImplementedError as error:
        if "FieldPath(" in str(expression):
            raise Invalid(f"{what} {expression}: expected columns by their names, found one by its position") from error


def _expression_columns(expression: pc.Expression, schema: pa.Schema) -> frozenset[str]:
    """The columns that the expression reads: without one of them it does not bind. Arrow has no call to list them."""
    _require_boolean(expression, schema)
    return frozenset(
        field.name
        for index, field in enumerate(schema)
        if not _binds(expression, pa.schema([*schema][:index] + [*schema][index + 1 :]))
    )


def _require_boolean(expression: pc.Expression, schema: pa.Schema) -> None:
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise Invalid(
            f"where {expression}: {said_of_expression(error)}; the columns are {listed(schema.names)}"
        ) from error


def said_of_expression(error: pa.ArrowException) -> str:
    """What Arrow says of an expression, without the schema, which it appends with a line a column."""
    first, _, more = str(error).partition("\n")
    return first.rpartition(" in ")[0] or first if more else first


def _binds(expression: pc.Expression, schema: pa.Schema) -> bool:
    try:
        schema.empty_table().filter(expression)
    except pa.ArrowInvalid:
        return False
    return True
