"""Row groups at another place of another file: their pages are the same bytes, and what tells of them is moved.

Spec: Parquet format 2.10 (`RowGroup`, `ColumnChunk`, `ColumnMetaData`, `OffsetIndex`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyhudi.format.parquet.footer import Chunk
from pyhudi.format.parquet.thrift import Items, Kind, Message, decode_message, encode_message

_PAGES: Final = (9, 10, 11)
"""The fields of a ColumnMetaData that tell where its data, index and dictionary pages lie."""


@dataclass(frozen=True, slots=True)
class MovedChunk:
    """A chunk of pages at its new place. `start`: of its pages there.

    `column_index`, `offset_index`: what tells the pages' bounds and places, as bytes, moved; None if nothing does.
    """

    chunk: Chunk
    start: int
    column_index: bytes | None = None
    offset_index: bytes | None = None

    def message(self, column_index: tuple[int, int] | None, offset_index: tuple[int, int] | None) -> Message:
        """Its ColumnChunk. The arguments: offset and bytes of the page index in the new file.

        Filters of the chunk's values are left out: they lie elsewhere in the old file. Readers do without.
        """
        shift = self.start - self.chunk.start
        facts = self.chunk.facts
        places = {f"f{key}": (Kind.I64, at + shift) for key in _PAGES if (at := facts.number(key))}
        moved = facts.with_fields(**places, f14=None, f15=None)
        return self.chunk.message.with_fields(
            f1=None,
            f2=(Kind.I64, 0),
            f3=(Kind.STRUCT, moved),
            f4=None if offset_index is None else (Kind.I64, offset_index[0]),
            f5=None if offset_index is None else (Kind.I32, offset_index[1]),
            f6=None if column_index is None else (Kind.I64, column_index[0]),
            f7=None if column_index is None else (Kind.I32, column_index[1]),
        )


def moved_offsets(content: bytes, shift: int, *, path: str) -> bytes:
    """An OffsetIndex whose pages lie `shift` bytes further on. Raises: CorruptFile."""
    message, _ = decode_message(content, path=path)
    pages = [one.with_fields(f1=(Kind.I64, (one.number(1) or 0) + shift)) for one in message.messages(1)]
    return encode_message(message.with_fields(f1=(Kind.LIST, Items(Kind.STRUCT, list(pages)))))


def group_message(
    chunks: Sequence[Message], old: Message, *, rows: int, start: int, ordinal: int
) -> Message:  # fmt: skip
    """The RowGroup of these ColumnChunks. `old`: of the file that it was copied from."""

    def total(key: int) -> int:
        return sum(facts.number(key) or 0 for one in chunks if (facts := one.message(3)) is not None)

    return old.with_fields(
        f1=(Kind.LIST, Items(Kind.STRUCT, list(chunks))),
        f2=(Kind.I64, total(6)),
        f3=(Kind.I64, rows),
        f5=(Kind.I64, start),
        f6=(Kind.I64, total(7)),
        f7=(Kind.I16, ordinal) if ordinal < 1 << 15 else None,
    )


def runs(chunks: Iterable[Chunk]) -> list[list[Chunk]]:
    """The chunks, those together that lie behind each other in their file."""
    found: list[list[Chunk]] = []
    for chunk in chunks:
        if found and (last := found[-1][-1]).start + last.size == chunk.start:
            found[-1].append(chunk)
        else:
            found.append([chunk])
    return found
