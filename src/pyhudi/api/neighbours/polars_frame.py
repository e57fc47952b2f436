"""A scan as a Polars LazyFrame, which tells it the columns, rows and number of rows that a query needs."""

import io
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from pyhudi.api.neighbours.library import library
from pyhudi.api.neighbours.narrowed import NarrowedReads
from pyhudi.predicate.foreign.polars import PolarsPredicates, without_hints


def lazy_frame(reads: NarrowedReads) -> Any:
    """The rows as a LazyFrame. Each time that it is collected, the files are read anew.

    Polars filters the rows itself, once more: what pyhudi leaves out is only what it knows that Polars would.
    Raises: Unsupported where Polars is not installed.
    """
    polars = library("polars", asked="to_polars(lazy=True)")
    plugins = library("polars.io.plugins", asked="to_polars(lazy=True)")
    empty = polars.from_arrow(reads.schema.empty_table())

    def read(
        with_columns: list[str] | None, predicate: Any | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        asked, tree = _taken_apart(polars, predicate)
        columns = reads.schema.names if with_columns is None else list(with_columns)
        roots = [] if asked is None else asked.meta.root_names()
        # A frame without columns has no rows: at least one column is read.
        needed = list(dict.fromkeys([*columns, *roots])) or reads.schema.names[:1]

        predicates = PolarsPredicates(reads.schema, lambda literal: _value(polars, literal))
        condition = None if tree is None else predicates.implied_by(tree)
        batches = reads.batches(needed, condition, str(asked))

        left = n_rows
        schema = pa.schema([reads.schema.field(name) for name in needed])
        for batch in chain([schema.empty_table().combine_chunks()], batches):
            frame = polars.from_arrow(batch)
            frame = frame if asked is None else frame.filter(asked)
            frame = frame if left is None else frame.head(left)
            yield frame.select(columns)
            left = None if left is None else left - len(frame)
            if left == 0:
                return

    return plugins.register_io_source(read, schema=empty.schema, is_pure=True)


def _taken_apart(polars: Any, predicate: Any | None) -> tuple[Any | None, Any | None]:
    """The predicate as Polars can apply it, and its JSON tree; None where there is none, or no tree of it."""
    if predicate is None:
        return None, None
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except (ValueError, TypeError, polars.exceptions.PolarsError):
        return predicate, None  # Polars alone filters by it
    kept = without_hints(tree)
    if kept is None:
        return None, None
    return (predicate if kept == tree else _expression(polars, kept)), kept


def _expression(polars: Any, tree: Any) -> Any:
    """Raises: polars.exceptions.ComputeError for a tree that Polars cannot read back."""
    return polars.Expr.deserialize(io.BytesIO(json.dumps(tree).encode()), format="json")


def _value(polars: Any, literal: Any) -> pa.Scalar | None:
    """The value of a literal, as Polars has it. None where JSON cannot spell it, such as NaN."""
    try:
        rows = polars.select(_expression(polars, literal)).to_arrow(compat_level=polars.CompatLevel.oldest())
    except polars.exceptions.PolarsError:
        return None
    return rows.column(0)[0]
