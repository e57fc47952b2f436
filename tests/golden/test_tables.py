"""We could read a table that Apache Hudi wrote other than Apache Hudi reads it.

Each table comes with the answers that its own release gave; ours must have the same rows, whichever way
the files are listed.
"""

from dataclasses import replace
from datetime import UTC

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.names import BaseFileName
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.local import LocalStorage
from pyhudi.table.read.files import read_plan_table
from pyhudi.table.read.plan import plan_snapshot
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import (
    GoldenAnswer,
    GoldenTable,
    GoldenTables,
    golden_answers,
    golden_names,
    half_long,
    has_metadata_table,
    listing_by_storage,
    old_names,
)

NAMES = golden_names()
ANSWERS = tuple(answer for name in (*NAMES, *old_names()) for answer in golden_answers(name))


def our_answer(table: GoldenTable, answer: GoldenAnswer) -> pa.Table:
    opened = HudiTable.open(table.path)
    match answer.query:
        case "snapshot":
            return opened.scan().to_arrow()
        case "read_optimized":
            return opened.scan(query="read_optimized").to_arrow()
        case "time_travel":
            return opened.scan(as_of=answer.times[0]).to_arrow()
        case "incremental":
            return opened.incremental(*table.range_bounds(answer)).to_arrow()
    raise AssertionError(answer.query)


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_our_answer_is_the_one_of_apache_hudi(golden: GoldenTables, answer: GoldenAnswer) -> None:
    table = golden.get(answer.table)

    actual, expected = our_answer(table, answer), table.expected(answer)

    assert_same_rows(actual, expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_snapshot_is_the_same_without_the_metadata_table(golden: GoldenTables, name: str) -> None:
    storage = LocalStorage(str(golden.get(name).path))
    snapshot = read_snapshot(storage, UTC, listing_by_storage)

    shown = snapshot.shown_columns("snapshot")
    schema = shown.schema(snapshot.schema_with_meta)
    plan = plan_snapshot(snapshot, schema=schema, predicate=None, where=None, query="snapshot", shown=shown)

    assert_same_rows(
        read_plan_table(storage, plan, SerialExecutor()), HudiTable.open(golden.get(name).path).scan().to_arrow()
    )


@pytest.mark.parametrize("name", [n for n in NAMES if has_metadata_table(n)])
def test_metadata_table_and_storage_list_the_same_committed_files(golden: GoldenTables, name: str) -> None:
    storage = LocalStorage(str(golden.get(name).path))
    by_metadata = read_snapshot(storage, UTC, open_listing)
    assert by_metadata.config.has_metadata_table
    by_storage = read_snapshot(storage, UTC, listing_by_storage)

    partitions = by_metadata.listing.partitions()

    assert set(partitions) <= set(by_storage.listing.partitions())
    for partition in by_storage.listing.partitions():
        assert committed_files(by_metadata, partition) == committed_files(by_storage, partition)
        known, stored = by_metadata.slices(partition), by_storage.slices(partition)
        if not by_metadata.config.layout.has_completion_times:
            # Up to version 6 a log's name does not tell whose it is: those of dead writers lie there unlisted.
            logs = {log.name for piece in known for log in piece.log_files}
            stored = [
                replace(piece, log_files=tuple(of for of in piece.log_files if of.name in logs)) for piece in stored
            ]
        assert known == stored


def committed_files(snapshot: Snapshot, partition: str) -> dict[str, int]:
    """Base files of completed writes, with their sizes; others may lie about that no metadata table lists."""
    names = [(BaseFileName.parse(file.name), file) for file in snapshot.listing.files(partition)]
    return {
        file.name: file.size_bytes
        for name, file in names
        if name is not None and snapshot.timeline.is_committed(name.requested)
    }


@pytest.mark.parametrize("name", half_long([n for n in NAMES if n.startswith("mor_")], start=0))
def test_a_filter_sees_rows_as_the_log_leaves_them(golden: GoldenTables, name: str) -> None:
    """Not as the base file has them: a row may match only since it was changed, or no longer."""
    table = HudiTable.open(golden.get(name).path)
    whole = table.scan().to_arrow()
    assert whole.num_rows
    for where in ("ts > 100", "ts = 100", "ts is null"):
        scan = table.scan(where=where)
        assert scan._plan.predicate is not None
        assert_same_rows(scan.to_arrow(), scan._plan.predicate.filter(whole))
        assert_same_rows(table.scan(columns=["ts"], where=where).to_arrow(), scan.to_arrow().select(["ts"]))
