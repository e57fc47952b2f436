"""Timestamps of INT96 could be read in nanoseconds, in which years beyond 1677 to 2262 overflow.

A file of such years is opened; and no other module of pyhudi opens a Parquet file by itself.
"""

import io
import re
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import pyhudi
from pyhudi.format.parquet.opening import open_parquet

FAR = [datetime(9999, 12, 31), datetime(1600, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 456_789)]


def test_int96_is_read_in_microseconds() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"at": pa.array(FAR)}), file, use_deprecated_int96_timestamps=True, store_schema=False)
    with open_parquet(io.BytesIO(file.getvalue())) as parquet:
        assert parquet.read()["at"].to_pylist() == FAR
    with open_parquet(io.BytesIO(file.getvalue()), pre_buffer=True) as parquet:
        assert parquet.schema_arrow.field("at").type == pa.timestamp("us")


def test_all_parquet_files_are_opened_in_this_way() -> None:
    root = Path(pyhudi.__file__).parent
    opening = re.compile(r"\b(?:pq\.(?:ParquetFile|ParquetDataset|read_table|read_pandas)|ParquetFile)\(")
    found = [path.relative_to(root).as_posix() for path in root.rglob("*.py") if opening.search(path.read_text())]
    assert found == ["format/parquet/opening.py"]
