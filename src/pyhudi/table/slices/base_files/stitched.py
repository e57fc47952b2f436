"""Rows that lie in two files, and columns that lie in none: bootstrapped files, and partition columns left out."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, OpenBaseFile
from pyhudi.table.slices.base_files.statistics import ChunkFacts


class StitchedFile:
    """A skeleton, which holds the meta fields, and the source file that holds all other columns, by row position.

    The row groups are those of the source. Row i of the skeleton belongs to row i of the source, over all row groups.
    Spec: format/bootstrap.md section 4.
    """

    def __init__(self, skeleton: OpenBaseFile, source: OpenBaseFile) -> None:
        """Takes both open files over. Raises: CorruptFile where they have different numbers of rows."""
        if skeleton.row_count != source.row_count:
            raise CorruptFile(
                skeleton.path, 0, expected=f"{source.row_count:,} rows, as its source {source.path} has",
                found=f"{skeleton.row_count:,}",
                hint="The source was changed after the bootstrap; put back the file of that time.",
            )  # fmt: skip
        self._skeleton, self._source = skeleton, source
        self.path, self.entries, self.row_count = skeleton.path, skeleton.entries, skeleton.row_count
        self._own = frozenset(skeleton.schema.names)
        self.schema = pa.schema([*skeleton.schema, *(field for field in source.schema if field.name not in self._own)])

    @property
    def group_rows(self) -> Sequence[int]:
        return self._source.group_rows

    @property
    def held_bytes(self) -> int:
        return self._skeleton.held_bytes + self._source.held_bytes

    def chunk(self, group: int, leaf: str) -> ChunkFacts | None:
        return None if leaf.partition(".")[0] in self._own else self._source.chunk(group, leaf)

    def batches(
        self,
        columns: Sequence[str],
        *,
        groups: Sequence[int] | None = None,
        use_threads: bool = False,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        own = [name for name in columns if name in self._own]
        others = [name for name in columns if name not in self._own]
        if not own:
            yield from self._source.batches(others, groups=groups, use_threads=use_threads, batch_rows=batch_rows)
            return

        starts = np.cumsum([0, *self.group_rows])
        rows = _RowsInOrder(self._skeleton.batches(own, batch_rows=batch_rows), self._skeleton.schema, own)
        for number in range(len(self.group_rows)) if groups is None else groups:
            at = int(starts[number])
            for batch in self._source.batches(others, groups=[number], use_threads=use_threads, batch_rows=batch_rows):
                if not len(batch):
                    continue
                found = {**_columns(rows.take(at, len(batch))), **_columns(batch)}
                yield pa.RecordBatch.from_arrays([found[name] for name in columns], names=list(columns))
                at += len(batch)

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns, groups=groups, use_threads=use_threads), schema)

    def close(self) -> None:
        self._skeleton.close()
        self._source.close()


class FilledFile:
    """A file with columns that have one value in all of its rows, and that are not stored in it, or stored as nulls.

    `values`: the texts of these columns. The file's own columns come first.
    """

    def __init__(self, file: OpenBaseFile, values: Mapping[str, str | None]) -> None:
        self._file, self._values = file, values
        missing = [name for name in values if name not in file.schema.names]
        self.schema = pa.schema([*file.schema, *(pa.field(name, pa.string()) for name in missing)])
        self.path, self.entries, self.row_count = file.path, file.entries, file.row_count

    @property
    def group_rows(self) -> Sequence[int]:
        return self._file.group_rows

    @property
    def held_bytes(self) -> int:
        return self._file.held_bytes

    def chunk(self, group: int, leaf: str) -> ChunkFacts | None:
        return None if leaf in self._values else self._file.chunk(group, leaf)

    def batches(
        self,
        columns: Sequence[str],
        *,
        groups: Sequence[int] | None = None,
        use_threads: bool = False,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        stored = [name for name in columns if name in self._file.schema.names]
        for batch in self._file.batches(stored, groups=groups, use_threads=use_threads, batch_rows=batch_rows):
            yield filled(batch, columns, self._values)

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns, groups=groups, use_threads=use_threads), schema)

    def close(self) -> None:
        self._file.close()


def filled(batch: pa.RecordBatch, columns: Sequence[str], values: Mapping[str, str | None]) -> pa.RecordBatch:
    """The batch with these columns, as far as it has them or `values` tells their text, which stands in for nulls."""
    found = _columns(batch)
    for name, text in values.items():
        if name not in found:
            found[name] = pa.repeat(pa.scalar(text, pa.string()), len(batch))
        elif text is not None and found[name].null_count:
            found[name] = pc.fill_null(found[name], pa.scalar(text).cast(found[name].type))
    names = [name for name in columns if name in found]
    if not names:
        return batch.select([])
    return pa.RecordBatch.from_arrays([found[name] for name in names], names=names)


class _RowsInOrder:
    """Rows of a stream by their positions, which must ascend."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, columns: Sequence[str]) -> None:
        self._batches, self._position = batches, 0
        self._schema = pa.schema([schema.field(name) for name in columns])
        self._held = pa.RecordBatch.from_pylist([], self._schema)

    def take(self, start: int, count: int) -> pa.RecordBatch:
        """The rows `[start, start + count)`. They must exist."""
        parts: list[pa.RecordBatch] = []
        while True:
            skipped = max(0, start - self._position)
            part = self._held.slice(min(skipped, len(self._held)), count)
            if len(part):
                parts.append(part)
                start, count = start + len(part), count - len(part)
            if not count:
                break
            self._position += len(self._held)
            self._held = next(self._batches)
        return (
            parts[0] if len(parts) == 1 else pa.Table.from_batches(parts, self._schema).combine_chunks().to_batches()[0]
        )


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))
