"""Rows of a Parquet file by the pages that hold them."""

from collections.abc import Sequence
from functools import cached_property
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.parquet.footer import Chunk, Footer, read_at, read_footer
from pyhudi.format.parquet.opening import open_parquet
from pyhudi.format.parquet.pages import ColumnPages, check_page, column_pages, plain_columns, small_file
from pyhudi.format.parquet.thrift import Message

ROWS_MAX: Final = 16
"""At most so many rows are read by their pages."""

GROUP_ROWS_MIN: Final = 32_768
"""Of smaller row groups all pages are decoded: finding pages takes as long."""


class PageReader:
    """Reads rows of one open file. `source`: where reading a part costs no request of its own."""

    def __init__(self, source: BinaryIO, path: str, schema: pa.Schema) -> None:
        self._source, self._path, self._schema = source, path, schema

    def rows_at(self, columns: Sequence[str], group: int, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch | None:
        """As `ReadsPages.rows_at`. None if a column has several values a row or no page index. Raises: CorruptFile."""
        footer = self._footer
        pages = self._pages(footer, columns, group) if footer.has_plain_pages else None
        if pages is None:
            return None

        found: dict[str, list[pa.Array]] = {name: [] for name in columns}
        for chosen, rows in _by_pages(pages, numbers):
            for alike in _of_same_rows(pages, chosen):
                first, stop = pages[alike[0]].rows_of(chosen[alike[0]])
                table = self._decoded(footer, [pages[at] for at in alike], [chosen[at] for at in alike], stop - first)
                within = pa.array(rows - first)
                for at in alike:
                    field = self._schema.field(columns[at])
                    values = one_array(table.column(columns[at])).take(within)
                    found[columns[at]].append(values if values.type == field.type else values.cast(field.type))
        arrays = [pa.concat_arrays(found[name]) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([self._schema.field(name) for name in columns]))

    @cached_property
    def _footer(self) -> Footer:
        return read_footer(self._source, path=self._path)[0]

    def _pages(self, footer: Footer, columns: Sequence[str], group: int) -> list[ColumnPages] | None:
        elements, rows = plain_columns(footer), footer.groups[group].rows
        chunks = {chunk.name: chunk for chunk in footer.groups[group].chunks if chunk.is_whole_column}
        found = []
        for name in columns:
            pages = self._pages_of(chunks[name], elements[name], rows) if name in elements and name in chunks else None
            if pages is None:
                return None
            found.append(pages)
        return found

    def _pages_of(self, chunk: Chunk, element: Message, rows: int) -> ColumnPages | None:
        place = chunk.offset_index
        return None if place is None else column_pages(chunk, element, self._read(*place), rows, path=self._path)

    def _decoded(self, footer: Footer, columns: list[ColumnPages], pages: list[int], rows: int) -> pa.Table:
        parts = []
        for column, page in zip(columns, pages, strict=True):
            content = self._read(*column.places[page])
            check_page(column, page, content, path=self._path)
            parts.append((column, self._read(*column.dictionary), content))
        source = pa.BufferReader(small_file(footer, parts, rows))
        return open_parquet(source).read(use_threads=False)

    def _read(self, start: int, size: int) -> bytes:
        return read_at(self._source, start, size, path=self._path)


def _by_pages(
    columns: Sequence[ColumnPages], numbers: npt.NDArray[np.int64]
) -> list[tuple[tuple[int, ...], npt.NDArray[np.int64]]]:
    """The rows that lie in the same page of every column, together: the page of each column, and the rows."""
    found: dict[tuple[int, ...], list[int]] = {}
    for row in numbers.tolist():
        found.setdefault(tuple(column.page_of(row) for column in columns), []).append(row)
    return [(pages, np.array(rows, np.int64)) for pages, rows in found.items()]


def _of_same_rows(columns: Sequence[ColumnPages], pages: Sequence[int]) -> list[list[int]]:
    """The numbers of the columns, those together whose pages have the same rows."""
    found: dict[tuple[int, int], list[int]] = {}
    for at, (column, page) in enumerate(zip(columns, pages, strict=True)):
        found.setdefault(column.rows_of(page), []).append(at)
    return list(found.values())
