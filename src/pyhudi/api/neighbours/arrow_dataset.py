"""A scan as a PyArrow Dataset: the form in which DuckDB hands its filters and columns over."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyhudi.api.neighbours.narrowed import NarrowedReads
from pyhudi.errors import Unsupported
from pyhudi.predicate.foreign.arrow import node_implied_by
from pyhudi.predicate.parse import parse_predicate

def _refuses(name: str) -> Callable[..., NoReturn]:
    """A call of a Dataset that would reach into a dataset of files, which is not there."""

    def refuse(self: object, *args: object, **options: object) -> NoReturn:
        raise Unsupported(f"Dataset.{name}: a scan of a Hudi table is no set of files; use scanner, to_table, to_batches")

    return refuse


class ScanDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a scan as a Dataset: `scanner(columns=, filter=)`, and what is made of it.

    Each scanner reads the files anew, only those that the filter leaves, and only the columns that it needs. Calls of
    a Dataset that speak of its fragments are Unsupported: a slice with logs is none.
    """

    def __init__(self, reads: NarrowedReads, label: str) -> None:
        self._reads, self._label = reads, label

    @property
    def schema(self) -> pa.Schema:
        return self._reads.schema

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        **options: Any,
    ) -> ds.Scanner:
        """A scanner of these columns, of rows that the filter keeps; `options` as for any Dataset's scanner.

        Raises: Invalid for a filter or an expression of columns that the scan lacks.
        """
        condition = None if filter is None else node_implied_by(filter, self.schema)
        needed = self._needed(columns, filter)
        schema = pa.schema([self.schema.field(name) for name in needed])
        batches = self._reads.batches(needed, condition, str(filter))
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        return ds.Scanner.from_batches(reader, columns=columns, filter=filter, **options)

    def _needed(self, columns: Sequence[str] | Mapping[str, pc.Expression] | None, filter: pc.Expression | None) -> list[str]:
        """The scan's columns that the answer and the filter are made of; one at least, which counts the rows."""
        if columns is None:
            return list(self.schema.names)
        wanted = set[str]()
        if filter is not None:
            wanted |= parse_predicate(filter, self.schema).columns
        for name in columns:
            made_of = columns[name] if isinstance(columns, Mapping) else pc.field(name)
            wanted |= parse_predicate(made_of.is_null(), self.schema).columns
        return [name for name in self.schema.names if name in wanted] or self.schema.names[:1]

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
