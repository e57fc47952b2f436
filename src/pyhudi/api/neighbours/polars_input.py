"""A Polars LazyFrame as a stream of Arrow batches: its query runs while the rows are taken."""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported


def is_lazy_frame(data: object) -> bool:
    """Whether the data is a LazyFrame. Polars is not imported for it."""
    kind = getattr(sys.modules.get("polars"), "LazyFrame", None)
    return isinstance(kind, type) and isinstance(data, kind)


def lazy_batches(frame: Any) -> pa.RecordBatchReader:
    """The rows of a LazyFrame, which is not collected. Memory: the chunks that its streaming engine has ahead.

    Raises: Unsupported for Polars 1, whose stream ends without an error where the query fails. Seen: 1.36.
    """
    polars = sys.modules["polars"]
    if int(polars.__version__.partition(".")[0]) < 2:
        raise Unsupported(
            f"data of type polars.LazyFrame: expected Polars 2 or later, found {polars.__version__}: its stream ends "
            "without an error where the query fails, and rows would be missing; hand in frame.collect()"
        )
    schema = polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def batches() -> Iterator[pa.RecordBatch]:
        for chunk in frame.collect_batches(maintain_order=True, lazy=True):
            yield from chunk.to_arrow().cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def refuse_objects(data: Any) -> None:
    """Raises: Invalid for a DataFrame of Polars with Python objects, for its stream holds their addresses in memory.

    Seen: 2.1.
    """
    polars: Any = sys.modules.get("polars")
    kind: Any = getattr(polars, "DataFrame", ())
    if isinstance(data, kind):
        for name, kind in data.schema.items():
            if kind == polars.Object:
                raise Invalid(f"column {name!r} of type Object: no such type in a table; cast its values to text")
