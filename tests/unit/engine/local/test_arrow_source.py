"""A step of a write could change what an earlier step found: rows would be planned by one count and written by another.

Steps are taken more than once, and what the earlier ones returned is held against what it was.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.arrow_source import ArrowSource
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.index.bucket import FixedBuckets
from pyhudi.index.choice import choose_index
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.input.source import InputSpec, Tagging, WriteSource
from pyhudi.write.memory_settings import MemorySettings

KEYS = KeySpec(("id",), ("part",), is_composite=False, is_hive_style=False, is_url_encoded=False)
ROWS = pa.table({"id": ["a", "b", "c", "a"], "part": ["p", "p", "q", "q"], "ts": [1, 2, 3, 4]})
COUNTS = {"p": 2, "q": 2}


def spec(*, extra: tuple[pa.Field, ...] = ()) -> InputSpec:
    return InputSpec(pa.schema([*ROWS.schema, *extra]), KEYS, ("ts",), numbers_rows=True)


@pytest.fixture(params=["table", "stream in memory", "stream in files"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WriteSource]:
    rows = ROWS if request.param == "table" else ROWS.to_reader()
    memory = MemorySettings(64 if request.param == "stream in files" else None, str(tmp_path))
    with closing(ArrowSource(rows, MemoryStorage(), SerialExecutor(), memory)) as made:
        yield made


def test_settling_keys_leaves_the_counted_rows_as_they_were(source: WriteSource) -> None:
    table = HudiTable.create("", name="t", record_key="id", partition_by="part", storage=MemoryStorage())
    index = choose_index("GLOBAL_SIMPLE", prunes_by_range=False)
    tagging = Tagging(index, ("ts",), compares_stored=False, moves=True, settles=True)
    counted = source.count(spec())

    found = [counted.tag(SliceCatalog(table._access.snapshot()), tagging) for _ in range(2)]

    assert [dict(tagged.profile.inserts) for tagged in found] == [{"p": 1, "q": 2}] * 2  # the row of "a" in "p" loses
    assert counted.counts == COUNTS


def test_buckets_are_counted_by_each_rule_that_is_asked(source: WriteSource) -> None:
    counted = source.count(spec())
    few, one = ({path: FixedBuckets(count, ("id",)) for path in COUNTS} for count in (4, 1))

    by_four, by_one = counted.count_buckets(few), counted.count_buckets(one)

    assert by_one.counts == {("p", 0): 2, ("q", 0): 2}
    assert {bucket for _, bucket in by_four.counts} > {0}
    assert sum(by_four.counts.values()) == 4


def test_rows_are_counted_anew_by_another_schema(source: WriteSource) -> None:
    first = source.count(spec())

    again = source.count(spec(extra=(pa.field("more", pa.int64()),)))

    assert first.counts == again.counts == COUNTS
