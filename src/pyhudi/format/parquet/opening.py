"""The one way to open a Parquet file whose values are read."""

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq


def open_parquet(source: BinaryIO | pa.NativeFile, *, pre_buffer: bool = False) -> pq.ParquetFile:
    """The file in `source`, open. `pre_buffer`: the columns of a row group are read ahead, in few requests.

    Timestamps of the old type INT96 are read in microseconds: in nanoseconds, the years before 1677 and after 2262
    would overflow.
    Raises: as `pyarrow.parquet.ParquetFile`, for what is no whole Parquet file.
    """
    return pq.ParquetFile(source, pre_buffer=pre_buffer, coerce_int96_timestamp_unit="us")
