"""Patterns that take other engines for ever, in calls and in a table's properties."""

import time
from contextlib import suppress

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable, NotFound

SECONDS_MAX = 5.0
BOMBS = ("(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    """Its only row matches all these patterns nearly."""
    made = HudiTable.create(tmp_path_factory.mktemp("patterns") / "t", name="t", record_key="id", partition_by="city")
    made.bulk_insert(pa.table({"id": ["a" * 5_000 + "!"], "text": ["x" * 5_000 + "!"], "city": ["a" * 200 + "!"]}))
    return made


@pytest.mark.parametrize("bomb", BOMBS)
def test_patterns_of_a_filter_finish(table: HudiTable, bomb: str) -> None:
    started = time.monotonic()
    for column in ("id", "text", "city"):
        for where in (f"{column} RLIKE '{bomb}'", f"regexp_replace({column}, '{bomb}', '') = ''"):
            with suppress(HudiError):
                table.scan(where=where).to_arrow()
    assert time.monotonic() - started < SECONDS_MAX


def test_like_patterns_of_many_wildcards_finish(table: HudiTable) -> None:
    started = time.monotonic()
    for pattern in ("%a" * 500 + "b", "a%" * 2_000 + "b", "_%" * 1_000 + "b"):
        for column in ("id", "city"):
            assert table.scan(where=f"{column} LIKE '{pattern}'").to_arrow().num_rows == 0
    assert time.monotonic() - started < SECONDS_MAX


def test_patterns_of_partitions_finish(table: HudiTable) -> None:
    started = time.monotonic()
    for pattern in ("*a" * 60 + "b", "?*" * 60 + "b"):
        with pytest.raises(NotFound, match="expected at least one that matches"):
            table.partitions_like([pattern])
    assert table.partitions_like(["*a" * 60 + "*!"]) == ("a" * 200 + "!",)
    assert time.monotonic() - started < SECONDS_MAX
