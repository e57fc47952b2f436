"""A Polars LazyFrame as a stream of Arrow batches: its query runs while the rows are taken."""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyhudi.errors import Unsupported


def is_lazy_frame(data: object) -> bool:
    """Whether the data is a LazyFrame. Polars is not imported for it."""
    kind = getattr(sys.modules.get("polars"), "LazyFrame", None)
    return isinstance(kind, type) and isinstance(data, kind)


def lazy_batches(frame: Any) -> pa.RecordBatchReader:
    """The rows of a LazyFrame, which is not collected. Memory: the chunks that its streaming engine has ahead.

    Raises: Unsupported for a Polars that cannot give a query's rows chunk by chunk.
    """
    if not hasattr(frame, "collect_batches"):
        raise Unsupported(
            "data of type polars.LazyFrame: this Polars has no LazyFrame.collect_batches, which gives rows chunk by "
            "chunk; install a newer one, or hand in frame.collect()"
        )
    polars = sys.modules["polars"]
    schema = polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def batches() -> Iterator[pa.RecordBatch]:
        for chunk in frame.collect_batches(maintain_order=True, lazy=True):
            yield from chunk.to_arrow().cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
