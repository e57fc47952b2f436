"""Reading a few rows of a row group by their numbers, with as little decoded as the format allows."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.table.slices.base_files.protocol import BATCH_ROWS, OpenBaseFile

_FEW_ROWS: Final = 16_384
_FEW_SHARE: Final = 8
"""If at most one row in so many of a row group is wanted, rows are decoded in steps of `_FEW_ROWS`."""


@runtime_checkable
class ReadsPages(Protocol):
    """A base file that can decode parts of a row group."""

    def rows_at(self, columns: Sequence[str], group: int, numbers: npt.NDArray[np.int64]) -> pa.RecordBatch | None:
        """The rows with these numbers within a row group, ascending. None if decoding up to the last of them is less.

        Raises: CorruptFile.
        """


def rows_at(
    file: OpenBaseFile, columns: Sequence[str], group: int, numbers: npt.NDArray[np.int64], *, use_threads: bool
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The rows with these numbers within a row group, in batches, with the range of `numbers` in each.

    `numbers`: ascending, at least one. Stops decoding after the last of them.
    """
    if isinstance(file, ReadsPages) and (found := file.rows_at(columns, group, numbers)) is not None:
        yield 0, len(numbers), found
        return

    start, is_few = 0, len(numbers) * _FEW_SHARE <= file.group_rows[group]
    batch_rows = _FEW_ROWS if is_few else BATCH_ROWS
    for batch in file.batches(columns, groups=[group], use_threads=use_threads, batch_rows=batch_rows):
        low, high = np.searchsorted(numbers, (start, start + len(batch)))
        if high - low == len(batch):
            yield low, high, batch
        elif high > low:
            yield low, high, batch.take(pa.array(numbers[low:high] - start))
        start += len(batch)
        if start > numbers[-1]:
            return
