"""Values for columns, computed from rows: what the right side of `SET column = …` means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import one_array
from pyhudi.options.told_names import listed
from pyhudi.predicate.evaluate import evaluate
from pyhudi.predicate.nodes import Node, columns_in, type_of
from pyhudi.predicate.parse import require_names, said_of_expression, told_as
from pyhudi.predicate.python_values import python_value
from pyhudi.predicate.storing import may_be_stored, refusal, stored_array


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column and the value that it gets, as a typed tree of Spark SQL, an Arrow expression, or one value for all.

    `columns`: the top-level columns that the value reads. `what`: how messages name the assignment.
    """

    field: pa.Field
    value: Node | pc.Expression | pa.Scalar
    columns: frozenset[str]
    what: str

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """The column's new values, in its type. Raises: Invalid for a value that the type cannot hold."""
        match self.value:
            case pa.Scalar():
                return pa.repeat(self.value, len(rows))
            case pc.Expression():
                values = _projected(self.value, rows, self.what)
            case _:
                values = evaluate(self.value, rows)
        return stored_array(values, self.field, what=self.what)


def parse_assignment(value: Any, field: pa.Field, schema: pa.Schema, *, what: str) -> Assignment:
    """The assignment of a value to a column.

    `value`: Spark SQL text over the columns of `schema`, a `pyarrow.compute.Expression`, or a value: anything else that
    the column can hold (text as `pyarrow.scalar`, since a str is SQL). `what`: names the assignment in messages.
    Raises: Invalid for what Spark refuses too, such as an unknown column or function; Unsupported for SQL that Spark
    would accept.
    """
    if isinstance(value, str):
        node = _parsed(value, schema, what)
        if not may_be_stored(type_of(node), field.type):
            raise Invalid(refusal(what, type_of(node), field))
        return Assignment(field, node, frozenset(column.path[0] for column in columns_in(node)), what)
    if isinstance(value, pc.Expression):
        require_names(value, f"{what}:")
        found = _projected(value, _no_rows(schema), what) if schema.names else None
        if found is not None and not may_be_stored(found.type, field.type):
            raise Invalid(refusal(what, found.type, field))
        return Assignment(field, value, _columns_read(value, schema), what)
    return Assignment(field, python_value(value, field, what=what), frozenset(), what)


def _parsed(text: str, schema: pa.Schema, what: str) -> Node:
    from pyhudi.predicate.resolve import parse_value  # imports sqlglot, which tasks do not need

    with told_as(f"{what}:"):
        try:
            return parse_value(text, schema)
        except Invalid as error:
            if not text.isidentifier():
                raise
            raise Invalid(f"{error}; the text itself is \"'{text}'\", or pyarrow.scalar({text!r})") from error


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _projected(expression: pc.Expression, rows: pa.RecordBatch, what: str) -> pa.Array:
    import pyarrow.dataset as ds  # imports pandas if it is installed, so not at the top

    try:
        scanner = ds.InMemoryDataset(pa.Table.from_batches([rows])).scanner(columns={"value": expression})
        return one_array(scanner.to_table().column("value"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        said = said_of_expression(error)
        raise Invalid(f"{what}: {expression}: {said}; the columns are {listed(rows.schema.names)}") from error


def _columns_read(expression: pc.Expression, schema: pa.Schema) -> frozenset[str]:
    """All columns that the expression may read: Arrow has no call to list them, so those without which it fails."""
    needed = []
    for at, field in enumerate(schema):
        others = pa.schema([*schema][:at] + [*schema][at + 1 :])
        try:
            _projected(expression, _no_rows(others), "")
        except Invalid:
            needed.append(field.name)
    return frozenset(needed)
