"""A scan as a PyArrow Dataset: the form in which DuckDB hands its filters and columns over."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyhudi.api.neighbours.narrowed import NarrowedReads
from pyhudi.errors import Unsupported
from pyhudi.predicate.foreign.arrow import node_implied_by
from pyhudi.predicate.parse import parse_predicate

Columns: TypeAlias = Sequence[str] | Mapping[str, pc.Expression] | None
"""The columns of an answer: names, or an expression for each name; None: all."""


@dataclass(frozen=True)
class ScanScanner:
    """What `ScanDataset.scanner` gives: the calls of a `pyarrow.dataset.Scanner` that yield rows.

    A Scanner of PyArrow would pull the batches, which Python makes, from threads of its own.
    Seen: PyArrow 26. Such threads run ahead of a reader that stops early; at the end of the process they wait for an
    interpreter that is gone, and the process never ends.
    """

    reads: NarrowedReads
    columns: Columns
    filter: pc.Expression | None

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the answer, in order."""
        return self._answer(self.reads.schema.empty_table()).schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns of the scan."""
        return self.reads.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, read as they are asked for."""
        schema, condition = self.reads.schema, None
        if self.filter is not None:
            condition = node_implied_by(self.filter, schema)
        for batch in self.reads.batches(self._needed(), condition, str(self.filter)):
            yield from self._answer(pa.Table.from_batches([batch])).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """All rows, in memory."""
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows. Reading stops once they are there."""
        kept, left = list[pa.RecordBatch](), num_rows
        batches = self.to_batches()
        while left > 0 and (batch := next(batches, None)) is not None:
            kept.append(batch.slice(0, left))
            left -= len(kept[-1])
        return pa.Table.from_batches(kept, self.projected_schema)

    def count_rows(self) -> int:
        narrow = ScanScanner(self.reads, self._needed()[:1] if self.filter is None else None, self.filter)
        return sum(map(len, narrow.to_batches()))

    def take(self, indices: pa.Array) -> pa.Table:
        return self.to_table().take(indices)

    def _answer(self, rows: pa.Table) -> pa.Table:
        """Rows of the scan, filtered and projected by Arrow itself."""
        return ds.InMemoryDataset(rows).scanner(columns=self.columns, filter=self.filter).to_table()

    def _needed(self) -> list[str]:
        """The scan's columns that the answer and the filter are made of; one at least, which counts the rows."""
        schema, wanted = self.reads.schema, set[str]()
        if self.columns is None:
            return list(schema.names)
        if self.filter is not None:
            wanted |= parse_predicate(self.filter, schema).columns
        for name in self.columns:
            made_of = self.columns[name] if isinstance(self.columns, Mapping) else pc.field(name)
            wanted |= parse_predicate(made_of.is_null(), schema).columns
        return [name for name in schema.names if name in wanted] or schema.names[:1]


def _refuses(name: str) -> Callable[..., NoReturn]:
    """A call of a Dataset that would reach into a dataset of files, which is not there."""

    def refuse(self: object, *args: object, **options: object) -> NoReturn:
        raise Unsupported(
            f"Dataset.{name}: a scan of a Hudi table is no set of files; use scanner, to_table, to_batches"
        )

    return refuse


class ScanDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a scan as a Dataset: `scanner(columns=, filter=)`, `schema`, and what is made of them.

    DuckDB takes a class for a Dataset that is derived from PyArrow's. Each scanner reads the files anew: only those
    that the filter leaves, and only the columns that it needs. Calls that speak of fragments are Unsupported: a slice
    with logs is none.
    """

    def __init__(self, reads: NarrowedReads, label: str) -> None:
        self._reads, self._label = reads, label

    @property
    def schema(self) -> pa.Schema:
        return self._reads.schema

    def scanner(self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any) -> ScanScanner:
        """A scanner of these columns, of rows that the filter keeps.

        `options`: how PyArrow reads files ahead; not needed here.
        Raises: Invalid for a filter or an expression of columns that the scan lacks.
        """
        scanner = ScanScanner(self._reads, columns, filter)
        scanner._needed()
        return scanner

    filter = _refuses("filter")
    get_fragments = _refuses("get_fragments")
    join = _refuses("join")
    join_asof = _refuses("join_asof")
    partition_expression = property(_refuses("partition_expression"))
    replace_schema = _refuses("replace_schema")
    sort_by = _refuses("sort_by")
    _get_fragments = _refuses("_get_fragments")
    _scanner_options = _refuses("_scanner_options")
    __reduce__ = _refuses("__reduce__")

    def __repr__(self) -> str:
        return f"ScanDataset({self._label})"
