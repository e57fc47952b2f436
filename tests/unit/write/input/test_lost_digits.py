"""A column of integers could become floating point by one careless input without anybody being told."""

import logging
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from pyhudi import HudiTable


@pytest.mark.parametrize(
    "stored, found, is_told",
    [
        (pa.int64(), pa.float64(), True),
        (pa.int64(), pa.float32(), True),
        (pa.int32(), pa.float32(), True),
        (pa.int32(), pa.float64(), False),
        (pa.int32(), pa.int64(), False),
        (pa.float32(), pa.float64(), False),
        (pa.int64(), pa.int32(), False),
    ],
    ids=str,
)
def test_a_column_that_loses_digits_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stored: pa.DataType, found: pa.DataType, is_told: bool
) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.insert(pa.table({"id": ["a"], "n": pa.array([1], stored)}))

    with caplog.at_level(logging.WARNING, "pyhudi"):
        table.upsert(pa.table({"id": ["b"], "n": pa.array([2], found)}))

    told = [record.getMessage() for record in caplog.records if "lose digits" in record.getMessage()]
    assert len(told) == is_told
    assert all(f"turns column 'n' from {stored} into {found} for good" in text for text in told)


def test_integers_with_gaps_of_pandas_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.insert(pa.table({"id": ["a"], "n": [2**60 + 1]}))

    with caplog.at_level(logging.WARNING, "pyhudi"):
        table.upsert(pd.DataFrame({"id": ["b", "c"], "n": [1, None]}))

    assert "numbers beyond 9,007,199,254,740,992 lose digits" in caplog.text
