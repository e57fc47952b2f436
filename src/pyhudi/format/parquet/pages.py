"""A few rows of a row group as a small Parquet file in memory: copies of the pages that hold them.

PyArrow decodes whole columns of a row group. For one row of many thousands that is most of the work.
Spec: Parquet format 2.10 (`OffsetIndex`, `PageLocation`, `ColumnMetaData`).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pyhudi.errors import CorruptFile
from pyhudi.format.parquet.footer import MAGIC, Chunk, Footer, encode_footer
from pyhudi.format.parquet.moved import group_message
from pyhudi.format.parquet.thrift import Items, Kind, Message, decode_message

_REPEATED: Final = 2
_HEADER: Final = 5
_HEADER_V2: Final = 8
"""What a page's header says of its values: of pages of version 1, and of those of version 2."""


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """The data pages of a column of plain values in one row group.

    `element`: what the schema says of the column. `first_rows`: the number of each page's first row in the row group.
    `places`: offset and bytes of each page. `rows`: of the row group.
    """

    chunk: Chunk
    element: Message
    first_rows: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    rows: int

    def page_of(self, row: int) -> int:
        return bisect_right(self.first_rows, row) - 1

    def rows_of(self, page: int) -> tuple[int, int]:
        """The first row of a page, and the first one behind it."""
        following = self.first_rows[page + 1] if page + 1 < len(self.first_rows) else self.rows
        return self.first_rows[page], following

    @property
    def dictionary(self) -> tuple[int, int]:
        """Offset and bytes of what lies before the data pages; no bytes if there is no dictionary."""
        return self.chunk.start, self.places[0][0] - self.chunk.start


def plain_columns(footer: Footer) -> Mapping[str, Message]:
    """What the schema says of each column that has one value a row and is no field of another, by name."""
    elements = footer.message.messages(2)[1:]
    found, at = {}, 0
    while at < len(elements):
        name = (elements[at].content(4) or b"").decode(errors="replace")
        behind = _behind(elements, at)
        if behind == at + 1 and elements[at].number(3) != _REPEATED:
            found[name] = elements[at]
        at = behind
    return found


def _behind(elements: Sequence[Message], at: int) -> int:
    """The number of the element behind one and all that are in it."""
    left, at = elements[at].number(5) or 0, at + 1
    while left > 0 and at < len(elements):
        at, left = _behind(elements, at), left - 1
    return at


def column_pages(chunk: Chunk, element: Message, offsets: bytes, rows: int, *, path: str) -> ColumnPages | None:
    """The pages of a column. `offsets`: its OffsetIndex. None if it does not tell of all rows. Raises: CorruptFile."""
    message, _ = decode_message(offsets, path=path)
    pages = [(one.number(1), one.number(2), one.number(3)) for one in message.messages(1)]
    places = tuple((at, size) for at, size, _ in pages if at is not None and size is not None)
    first_rows = tuple(row for _, _, row in pages if row is not None)
    if not pages or len(places) < len(pages) or len(first_rows) < len(pages):
        return None

    end = chunk.start + chunk.size
    is_within = all(chunk.start <= at and 0 < size <= end - at for at, size in places)
    is_ascending = all(one < other for one, other in zip(first_rows, (*first_rows[1:], rows), strict=True))
    is_in_order = all(at + size <= behind for (at, size), (behind, _) in pairwise(places))
    if not is_within or first_rows[0] != 0 or not is_ascending or not is_in_order:
        raise CorruptFile(
            path, chunk.start, expected=f"pages within the column chunk, of {rows:,} rows", found="an index of others"
        )
    return ColumnPages(chunk, element, first_rows, places, rows)


def check_page(column: ColumnPages, page: int, content: bytes, *, path: str) -> None:
    """Compare what a page says of itself with what the index says. Raises: CorruptFile.

    A damaged index could give rows of other numbers, or one page for another.
    """
    header, end = decode_message(content, path=path)
    start, stop = column.rows_of(page)
    at, _ = column.places[page]
    facts = header.message(_HEADER) or header.message(_HEADER_V2)
    values, size = None if facts is None else facts.number(1), header.number(3)
    if values != stop - start or size is None or end + size != len(content):
        expected = f"a page of {stop - start:,} values in {len(content):,} bytes, as the index of pages says"
        raise CorruptFile(path, at, expected=expected, found=f"one of {values} values in {end + (size or 0):,} bytes")


def small_file(footer: Footer, columns: Sequence[tuple[ColumnPages, bytes, bytes]], rows: int) -> bytes:
    """A Parquet file of one page of each column. All pages have so many rows.

    `columns`: with the bytes of the dictionary page, which may be none, and those of the data page.
    """
    out = bytearray(MAGIC)
    chunks = []
    for column, dictionary, page in columns:
        start = len(out)
        out += dictionary
        out += page
        facts = column.chunk.facts.with_fields(
            f5=(Kind.I64, rows),
            f7=(Kind.I64, len(out) - start),
            f8=None,
            f9=(Kind.I64, start + len(dictionary)),
            f10=None,
            f11=(Kind.I64, start) if dictionary else None,
            f12=None,
            f13=None,
            f14=None,
            f15=None,
            f16=None,
        )
        chunks.append(Message({2: (Kind.I64, 0), 3: (Kind.STRUCT, facts)}))

    group = group_message(chunks, Message(), rows=rows, start=len(MAGIC), ordinal=0)
    root = footer.message.messages(2)[0].with_fields(f5=(Kind.I32, len(columns)))
    elements = [root, *(column.element for column, _, _ in columns)]
    message = footer.message.with_fields(
        f2=(Kind.LIST, Items(Kind.STRUCT, list(elements))),
        f3=(Kind.I64, rows),
        f4=(Kind.LIST, Items(Kind.STRUCT, [group])),
        f5=None,
        f7=None,
    )
    return bytes(out) + encode_footer(message)
