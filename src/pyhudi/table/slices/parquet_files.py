"""Opening base files, and the errors for files that do not open."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptFile, HudiError
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.view.missing_files import told_as_missing

BATCH_ROWS = 65_536

_BROKEN = (pa.ArrowException, OSError, UnicodeDecodeError)


class StoredParquet(pq.ParquetFile):  # type: ignore[misc]  # PyArrow states no types
    """An open base file. Reading a damaged page raises CorruptFile, which names the file.

    Opening reads the footer only. Damage in a page shows when its rows are read.
    """

    def __init__(self, source: Any, path: str) -> None:
        super().__init__(source, pre_buffer=True)
        self._stored_path = path

    def iter_batches(self, *args: Any, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        with _named(self._stored_path):
            yield from super().iter_batches(*args, **kwargs)

    def read(self, *args: Any, **kwargs: Any) -> pa.Table:
        with _named(self._stored_path):
            return super().read(*args, **kwargs)

    def read_row_group(self, *args: Any, **kwargs: Any) -> pa.Table:
        with _named(self._stored_path):
            return super().read_row_group(*args, **kwargs)

    def read_row_groups(self, *args: Any, **kwargs: Any) -> pa.Table:
        with _named(self._stored_path):
            return super().read_row_groups(*args, **kwargs)


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except HudiError:
        raise
    except _BROKEN as error:
        raise corrupt_parquet(path, error) from error


def open_parquet(storage: Storage, path: str) -> pq.ParquetFile:
    """A base file, open at its footer.

    Raises: CorruptFile when it is no whole Parquet file.
    """
    with told_as_missing(path):
        source = storage.open_input(path).__enter__()
    try:
        with told_as_missing(path):  # some stores open the file only at the first read
            return StoredParquet(source, path)
    except HudiError:
        raise
    except _BROKEN as error:
        source.close()
        raise corrupt_parquet(path, error) from error


def read_stored_batches(
    storage: Storage,
    path: str,
    columns: Sequence[str],
    *,
    use_threads: bool,
    choose: Callable[[pq.ParquetFile], Sequence[int]] | None = None,
    evolution: Evolution | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file in order, as they are stored, with those of the columns that the file has.

    `choose`: picks the row groups to read from the open file. None: all are read. `evolution`: columns that had other
    names when the file was written get those of the query; then all row groups are read.
    Memory: one row group of these columns. Raises: CorruptFile.
    """
    then = None if evolution is None else evolution.of_file(path, columns)
    with closing(open_parquet(storage, path)) as file:
        asked = columns if then is None else then.stored
        present = [name for name in asked if name in file.schema_arrow.names]
        is_chosen = choose is not None and then is None
        groups = choose(file) if choose is not None and is_chosen else range(file.metadata.num_row_groups)
        for batch in read_row_groups(file, groups, present, use_threads=use_threads):
            yield batch if then is None else then.named(batch)


def read_row_groups(
    file: pq.ParquetFile,
    groups: Sequence[int],
    columns: Sequence[str],
    *,
    use_threads: bool,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """These columns of an open file's rows, from these row groups. Raises: CorruptFile."""
    if len(groups):
        yield from file.iter_batches(batch_rows, groups, columns, use_threads=use_threads)


def corrupt_parquet(path: str, error: Exception) -> CorruptFile:
    return CorruptFile(
        path, 0, expected="a whole Parquet file", found=f"one that does not read ({error})",
        hint="It is cut short or damaged; restore it, or travel to a time before it was written.",
    )  # fmt: skip
