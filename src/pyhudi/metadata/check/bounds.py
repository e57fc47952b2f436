"""Comparing bounds of columns in the metadata table with those of the data."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.bound_orders import is_bytes
from pyhudi.metadata.check.differences import Difference, DifferenceKind
from pyhudi.metadata.derive.column_bounds import IndexedColumn


def beyond(
    index: str, partition: str, column: IndexedColumn, stored: pa.Table, known: pa.Table, named: str
) -> Iterator[Difference]:
    """The rows whose stored values or nulls the statistics rule out. `named`: the column that names a row of both."""
    names = stored.column(named).to_pylist()
    at = pc.index_in(pa.array(names, pa.string()), one_array(known.column(named)))
    said = known.take(one_array(at))

    is_known = pc.fill_null(said.column("is_known"), False)
    if is_bytes(said.column("min").type):
        is_known = pc.and_(is_known, False)
    # A value beyond its bound, or a null where none is counted, misleads a reader.
    below = pc.less(_plain(stored.column("min")), _plain(said.column("min")))
    above = pc.greater(_plain(stored.column("max")), _plain(said.column("max")))
    hidden = pc.and_(pc.equal(said.column("null_count"), 0), pc.greater(stored.column("null_count"), 0))
    wrong = pc.or_(pc.and_(is_known, pc.or_(pc.fill_null(below, False), pc.fill_null(above, False))), hidden)

    for row in _positions(wrong):
        yield Difference(
            index, DifferenceKind.RECORD_VALUE, partition, f"{column.name} {names[row]}".strip(),
            stored=_span(stored, row), known=_span(said, row),
        )  # fmt: skip


def _span(table: pa.Table, row: int) -> str:
    low, high, nulls = (table.column(name)[row].as_py() for name in ("min", "max", "null_count"))
    return f"{low!r:.40} to {high!r:.40}, {nulls} nulls"


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


def _positions(mask: pa.ChunkedArray) -> Iterable[int]:
    """The rows at which the mask is true. PyArrow 24 ends the process over a mask without chunks."""
    found: list[int] = pc.indices_nonzero(one_array(pc.fill_null(mask, False))).to_pylist()
    return found
