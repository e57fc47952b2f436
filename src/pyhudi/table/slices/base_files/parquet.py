"""Parquet base files."""

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import HudiError, Unsupported
from pyhudi.format.parquet.opening import open_parquet
from pyhudi.table.slices.base_files.parquet_pages import GROUP_ROWS_MIN, ROWS_MAX, PageReader
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, telling_corrupt
from pyhudi.table.slices.base_files.statistics import ParquetStatistics

_named = partial(telling_corrupt, kind="a whole Parquet file", broken=(pa.ArrowException, OSError, UnicodeDecodeError))
_ENCRYPTED = b"PARE"


class ParquetBaseFile(ParquetStatistics):
    """An open Parquet file."""

    def __init__(self, source: BinaryIO, path: str) -> None:
        """Raises: CorruptFile when it is no whole Parquet file; Unsupported when its footer is encrypted."""
        self.path, self._source = path, source
        try:
            with _named(path):
                self._file = open_parquet(source, pre_buffer=True)
        except HudiError as error:
            if _is_encrypted(source):
                raise Unsupported(
                    f"{path}: its footer is encrypted (Parquet modular encryption): pyhudi has no keys to read it; "
                    "expected a file without encryption"
                ) from error
            raise
        super().__init__(self._file.schema_arrow, self._file.metadata)

    @property
    def row_count(self) -> int:
        return int(self.footer.num_rows)

    @property
    def entries(self) -> Mapping[bytes, bytes]:
        return self.footer.metadata or {}

    @property
    def held_bytes(self) -> int:
        return sum(self.footer.row_group(number).total_byte_size for number in range(self.footer.num_row_groups))

    def batches(
        self,
        columns: Sequence[str],
        *,
        groups: Sequence[int] | None = None,
        use_threads: bool = False,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        if groups is None or len(groups):
            with _named(self.path):
                yield from self._file.iter_batches(batch_rows, groups, list(columns), use_threads=use_threads)

    def read(
        self, columns: Sequence[str], *, groups: Sequence[int] | None = None, use_threads: bool = False
    ) -> pa.Table:
        with _named(self.path):
            if groups is None:
                return self._file.read(list(columns), use_threads=use_threads)
            return self._file.read_row_groups(list(groups), list(columns), use_threads=use_threads)

    def rows_at(self, columns: Sequence[str], group: int, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch | None:
        """As `ReadsPages.rows_at`: of files at hand, since each page would be a request of its own elsewhere."""
        is_small = self.group_rows[group] < GROUP_ROWS_MIN or len(numbers) > ROWS_MAX
        if is_small or not columns or not isinstance(self._source, pa.OSFile | io.BytesIO):
            return None
        with _named(self.path):
            return self._pages.rows_at(columns, group, numbers)

    @cached_property
    def _pages(self) -> PageReader:
        return PageReader(self._source, self.path, self.schema)

    def close(self) -> None:
        self._file.close()
        self._source.close()


def _is_encrypted(source: BinaryIO) -> bool:
    """Whether a file ends as one with an encrypted footer does."""
    try:
        source.seek(-len(_ENCRYPTED), 2)
        return source.read(len(_ENCRYPTED)) == _ENCRYPTED
    except (OSError, ValueError):  # shorter than that
        return False
