"""A row could be taken as it is stored though a log touches it, or be given twice, or by neither side.

Of every merge-on-read table that Apache Hudi wrote, whatever its rules of merging are: the rows that `find_touched`
does not name and those of `read_touched` must be the rows of the slice, by keys and by positions, in one pass and in
several.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pyhudi import HudiTable, Unsupported
from pyhudi.format.log.headers import positions_base_instant
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.merge.rules import custom
from pyhudi.storage.protocol import Storage
from pyhudi.table.read.plan import ReadPlan
from pyhudi.table.slices.base_files.rows import read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import read_merged, stored_blocks
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.table.slices.touched_rows import find_touched, read_touched
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, golden_names, half_long

NAMES = tuple(name for name in golden_names() if name.startswith(("mor_", "upgraded_mor_")))


class Later:
    """A merger that looks at whole rows; the later one stays."""

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        return newer


def slices(golden: GoldenTables, name: str) -> Iterator[tuple[Storage, ReadPlan, SliceFiles]]:
    try:
        scan = HudiTable.open(golden.get(name).path).scan()
    except Unsupported:
        return
    for file in scan._plan.files:
        if file.logs:
            yield scan._storage, scan._plan, file.slice_files


def rows_apart(
    storage: Storage, files: SliceFiles, reading: LogReading, stored: pa.Schema, columns: list[str]
) -> tuple[pa.Table, pa.Table]:
    """The untouched rows, and what is left of the touched ones."""
    schema = pa.schema([stored.field(name) for name in columns])
    base = schema.empty_table()
    if files.base_path is not None:
        batches = read_stored_batches(
            storage, files.base_path, columns, use_threads=False, as_written=reading.as_written
        )
        base = pa.Table.from_batches((conform_batch(b, schema, path="base") for b in batches), schema)
    touched = find_touched(storage, files, reading, stored)
    assert (np.diff(touched) > 0).all()
    is_untouched = np.ones(len(base), np.bool_)
    is_untouched[touched] = False
    left = read_touched(storage, files, reading, stored, columns, use_threads=False)
    return base.filter(pa.array(is_untouched)), pa.Table.from_batches((b.select(columns) for b in left), schema)


def merged(storage: Storage, files: SliceFiles, reading: LogReading, stored: pa.Schema, columns: list[str]) -> pa.Table:
    schema = pa.schema([stored.field(name) for name in columns])
    batches = read_merged(storage, files, reading, stored, columns, use_threads=False)
    return pa.Table.from_batches((b.select(columns) for b in batches), schema)


@pytest.mark.parametrize("name", half_long(NAMES, start=1))
def test_untouched_and_touched_rows_are_the_rows_of_the_slice(golden: GoldenTables, name: str) -> None:
    for storage, plan, files in slices(golden, name):
        assert plan.log_reading is not None
        stored = plan.stored_schema
        for columns in (stored.names, stored.names[-1:]):
            expected = merged(storage, files, plan.log_reading, stored, columns)
            some = replace(plan.log_reading, log_size_bytes_max=sum(size_bytes for _, size_bytes in files.logs))
            for passes in (plan.log_reading, some):
                untouched, touched = rows_apart(storage, files, passes, stored, columns)
                assert_same_rows(pa.concat_tables([untouched, touched]), expected)


@pytest.mark.parametrize("name", ["mor_avro_v8_h102", "mor_event_time_v9_h120", "mor_logonly_v9_h120"])
def test_a_merger_sees_the_whole_rows_that_are_touched(golden: GoldenTables, name: str) -> None:
    for storage, plan, files in slices(golden, name):
        assert plan.log_reading is not None
        reading = replace(plan.log_reading, rules=custom(Later(), ordering=plan.log_reading.rules.ordering))
        columns = plan.stored_schema.names[-2:]
        untouched, touched = rows_apart(storage, files, reading, plan.stored_schema, columns)
        expected = merged(storage, files, reading, plan.stored_schema, columns)
        assert_same_rows(pa.concat_tables([untouched, touched]), expected)


def test_keys_and_positions_name_the_same_rows(golden: GoldenTables) -> None:
    """Without the look at positions the same rows are found by their keys, as no key is in these files twice."""
    found = 0
    for storage, plan, files in slices(golden, "mor_event_time_v9_h120"):
        assert plan.log_reading is not None
        blocks = stored_blocks(storage, files, plan.log_reading)
        assert files.base_path is not None
        assert all(positions_base_instant(block) == files.base_instant for block in blocks)
        by_position = find_touched(storage, files, plan.log_reading, plan.stored_schema)
        elsewhere = replace(files, base_instant="0")
        by_key = find_touched(storage, elsewhere, plan.log_reading, plan.stored_schema)
        assert by_position.tolist() == by_key.tolist()
        found += len(by_key)
    assert found


def test_rows_that_the_log_replaces_are_not_read(golden: GoldenTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """By commit time each log row wins: of the base file the keys are read, and nothing else."""
    asked: list[list[str]] = []

    def counted(storage: Storage, path: str, columns: list[str], **more: object) -> Iterator[pa.RecordBatch]:
        asked.append(list(columns))
        return read_stored_batches(storage, path, columns, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("pyhudi.table.slices.touched_rows.read_stored_batches", counted)
    for storage, plan, files in slices(golden, "mor_commit_time_v9_h120"):
        assert plan.log_reading is not None
        list(read_touched(storage, files, plan.log_reading, plan.stored_schema, plan.stored_schema.names,
                          use_threads=False))  # fmt: skip

    assert asked
    assert all(columns == [RECORD_KEY] for columns in asked)
