"""The protocol of an open base file, whatever its format."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from pyhudi.errors import CorruptFile, HudiError
from pyhudi.table.slices.base_files.statistics import Statistics

BATCH_ROWS = 65_536


class OpenBaseFile(Statistics, Protocol):
    """An open base file. Opening reads what the file states of itself; damage in rows shows when they are read.

    Every method that reads rows raises CorruptFile, which names the file. Closing it twice is harmless.
    """

    @property
    def path(self) -> str:
        """Relative to the table."""

    @property
    def row_count(self) -> int: ...

    @property
    def entries(self) -> Mapping[bytes, bytes]:
        """What the writer noted beside the rows, under the names of `format/footer.py` in every format."""

    @property
    def held_bytes(self) -> int:
        """What the rows take in memory, roughly, as far as the file tells it without reading them."""

    def batches(
        self,
        columns: Sequence[str],
        *,
        groups: Sequence[int] | None = None,
        use_threads: bool = False,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """These columns of the rows in order. All columns must be in `schema`.

        `groups`: the row groups to read, ascending; None: all. `use_threads`: columns are decoded in parallel, where
        the format can. Memory: one row group of these columns.
        """

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        """As `batches`, all rows at once."""

    def close(self) -> None: ...


def corrupt_file(path: str, kind: str, error: Exception) -> CorruptFile:
    """The error for a base file that does not read. `kind`: such as "a whole Parquet file"."""
    return CorruptFile(
        path, 0, expected=kind, found=f"one that does not read ({error})",
        hint="It is cut short or damaged; restore it, or travel to a time before it was written.",
    )  # fmt: skip


@contextmanager
def telling_corrupt(path: str, kind: str, broken: tuple[type[Exception], ...]) -> Iterator[None]:
    """Errors of the library that reads a format become `corrupt_file`. `broken`: what it raises for a damaged file."""
    try:
        yield
    except HudiError:
        raise
    except broken as error:
        raise corrupt_file(path, kind, error) from error


def without_columns(rows: int) -> pa.RecordBatch:
    """So many rows of no column."""
    return pa.record_batch([pa.nulls(rows)], ["rows"]).select([])
