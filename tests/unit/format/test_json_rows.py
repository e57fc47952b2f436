"""JSON of rows could be no JSON, or say another value than the row holds.

Python's own parser reads each text back; spellings that Apache Hudi has of its own are pinned one by one.
"""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.json_rows import json_texts

KIND = pa.struct(
    [
        ("text", pa.string()),
        ("count", pa.int64()),
        ("is_on", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("by_name", pa.map_(pa.string(), pa.int32())),
        ("inner", pa.struct([("deep", pa.list_(pa.list_(pa.int32())))])),
        ("content", pa.binary()),
    ]
)
ROWS = st.none() | st.fixed_dictionaries(
    {
        "text": st.none() | st.text(st.characters(codec="utf-8")),
        "count": st.none() | st.integers(-(2**63), 2**63 - 1),
        "is_on": st.none() | st.booleans(),
        "tags": st.none() | st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=3), max_size=3),
        "by_name": st.none()
        | st.dictionaries(st.text('ab"\\\n', max_size=2), st.none() | st.integers(-9, 9), max_size=3).map(
            lambda entries: list(entries.items())
        ),
        "inner": st.none()
        | st.fixed_dictionaries(
            {"deep": st.none() | st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2), max_size=3)}
        ),
        "content": st.none() | st.binary(max_size=5),
    }
)


def plain(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row as JSON can say it."""
    if row is None:
        return None
    content = None if row["content"] is None else {"bytes": row["content"].decode("latin-1")}
    return {**row, "by_name": None if row["by_name"] is None else dict(row["by_name"]), "content": content}


@given(st.lists(ROWS, max_size=6), st.integers(0, 3))
def test_each_text_reads_back_as_its_row(rows: list[dict[str, Any] | None], start: int) -> None:
    values = pa.array(rows, KIND).slice(min(start, len(rows)))

    texts = json_texts(values).to_pylist()

    assert [None if text is None else json.loads(text) for text in texts] == [plain(row) for row in rows[start:]]


@pytest.mark.parametrize(
    "value,kind,text",
    [
        (Decimal("-1.05"), pa.decimal128(10, 2), "[-1, -1, -1, -1, -105]"),
        (Decimal("123.45"), pa.decimal128(38, 2), f"[{'0, ' * 14}48, 57]"),
        (1e300, pa.float64(), "1.0E300"),
        (-1979.1562, pa.float32(), "-1979.1562"),
        (float("nan"), pa.float64(), '"NaN"'),
        (float("-inf"), pa.float64(), '"-Infinity"'),
        (date(1969, 12, 31), pa.date32(), "-1"),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), pa.timestamp("us", "UTC"), "1000000"),
        (b"\x00\xff", pa.binary(), '{"bytes": "\\u0000ÿ"}'),
        (None, pa.int32(), "null"),
        ("é中", pa.string(), '"é中"'),
    ],
)
def test_values_are_spelled_as_apache_hudi_does(value: object, kind: pa.DataType, text: str) -> None:
    row = pa.array([{"a": value}], pa.struct([("a", kind)]))

    assert json_texts(row).to_pylist() == [f'{{"a": {text}}}']
