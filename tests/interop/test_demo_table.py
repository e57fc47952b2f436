"""The demo's own table, real and written on Spark: what Apache Hudi and hudi-rs would read otherwise than we do.

The demo makes it as a user would. Every query that a reader has is compared row by row; then Apache Hudi and we write
it in turns.
"""

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import read_hudi_rs
from tests.support.reference.client import ReferenceHudi
from tests.support.reference.environment import PROJECT

KEY = ["year", "month", "day", "carrier", "flight", "origin", "sched_dep_time"]


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    path = tmp_path_factory.mktemp("demo") / "flights"
    made = subprocess.run(
        [sys.executable, "-m", "demo.flights", "--path", str(path)],
        cwd=PROJECT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-3_000:] + made.stderr[-3_000:]
    return HudiTable.open(path)


@pytest.mark.parametrize("metadata", [True, False], ids=["by_metadata_table", "by_storage"])
def test_both_releases_read_the_flights_as_we_do(
    flights: HudiTable, hudi_102: ReferenceHudi, hudi_120: ReferenceHudi, metadata: bool
) -> None:
    ours = flights.scan().to_arrow()
    assert ours.num_rows == 336_715
    for hudi in (hudi_102, hudi_120):
        assert_same_rows(hudi.read(flights.path, **{"hoodie.metadata.enable": metadata}), ours)


def test_time_travel_and_changes_of_the_flights_are_read_alike(
    flights: HudiTable, hudi_102: ReferenceHudi, hudi_120: ReferenceHudi
) -> None:
    commits = [i for i in flights.timeline() if i.action == "commit"]
    first, before_corrections, corrections = commits[0], commits[-3], commits[-2]
    assert before_corrections.completed is not None
    assert corrections.completed is not None
    for hudi in (hudi_102, hudi_120):
        for at in (first, before_corrections):
            travelled = hudi.read(flights.path, **{"as.of.instant": at.requested})
            assert_same_rows(travelled, flights.scan(as_of=at.requested).to_arrow())
        # 1.0.2 counts the beginning in, so that a range for both begins between two commits.
        start = str(int(before_corrections.completed) + 1)
        changed = hudi.read(
            flights.path,
            **{
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": start,
                "hoodie.datasource.read.end.instanttime": corrections.completed,
            },
        )
        assert changed.num_rows == 717
        assert_same_rows(changed, flights.incremental(start, corrections.completed).to_arrow())


def test_hudi_rs_reads_the_flights_as_we_do(flights: HudiTable) -> None:
    commits = [i for i in flights.timeline() if i.action == "commit"]
    assert_same_rows(read_hudi_rs(flights.path), flights.scan().to_arrow())
    at = commits[0].requested
    assert_same_rows(read_hudi_rs(flights.path, as_of=at), flights.scan(as_of=at).to_arrow())
    assert commits[-3].completed is not None
    span = commits[-3].completed, commits[-2].completed
    assert_same_rows(read_hudi_rs(flights.path, incremental=span), flights.incremental(*span).to_arrow())


def test_both_write_on(flights: HudiTable, hudi_102: ReferenceHudi, hudi_120: ReferenceHudi) -> None:
    """Last in this file: it changes the table."""
    some = flights.scan(where="month = 3 and carrier = 'AA'", meta_fields=False).to_arrow()
    later = pc.add(some.column("updated_at"), pa.scalar(90 * 86_400_000_000, pa.duration("us")))
    changed = some.set_column(some.schema.get_field_index("updated_at"), "updated_at", later)
    nothing = pa.nulls(len(some), some.schema.field("dep_delay").type)
    changed = changed.set_column(changed.schema.get_field_index("dep_delay"), "dep_delay", nothing)
    facts = {
        "hoodie.table.name": flights.name,
        "hoodie.datasource.write.recordkey.field": ",".join(KEY),
        "hoodie.datasource.write.partitionpath.field": "month",
        "hoodie.datasource.write.precombine.field": "updated_at",
    }
    hudi_102.write(flights.path, changed, operation="upsert", **facts)
    hudi_102.write(flights.path, changed.slice(0, 40), operation="delete", **facts)
    assert flights.scan(where="month = 3 and dep_delay is null").to_arrow().num_rows >= len(some) - 40
    assert_same_rows(flights.scan().to_arrow(), hudi_102.read(flights.path))
    assert flights.scan(meta_fields=False).to_arrow().num_rows == 336_715 - 40

    put_back = flights.upsert(changed.slice(0, 25))
    assert (put_back.inserted, put_back.updated) == (25, 0)
    assert flights.properties["hoodie.table.metadata.partitions"] == "column_stats,files,partition_stats"
    assert flights.delete(changed.slice(30, 60).select(KEY)).deleted == 50

    ours = flights.scan().to_arrow()
    skipping = {"hoodie.metadata.enable": True, "hoodie.enable.data.skipping": True}
    assert_same_rows(hudi_102.read(flights.path, **skipping), ours)
    assert_same_rows(hudi_120.read(flights.path, **skipping), ours)
    where = "month = 3 and carrier = 'AA' and distance > 1000"
    assert_same_rows(hudi_102.read(flights.path, where, **skipping), flights.scan(where=where).to_arrow())
