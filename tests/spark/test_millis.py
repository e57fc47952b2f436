"""Spark counts in microseconds: it could spell keys of a column of milliseconds otherwise, hand its numbers over in the
wrong unit, or cut what milliseconds cannot hold.

Each write is done twice, on Spark and with the same rows as Arrow; what is stored must be equal.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable
from pyhudi.storage.local import LocalStorage
from tests.spark.handovers import handed
from tests.support.compare import assert_same_rows
from tests.support.millis_tables import NOON, create_in_millis, moments
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark

MICROS = pa.timestamp("us", "UTC")
INNER = pa.struct([("at", MICROS), ("n", pa.int64())])
SCHEMA = pa.schema([("id", pa.string()), ("at", MICROS), ("l", pa.list_(INNER)), ("v", pa.int64())])
OLD = -3_000_000_000_000
"""In 1874."""


def rows(*ats: int, v: int) -> pa.Table:
    times = moments(*ats)
    lists = [[{"at": at, "n": v}, None] for at in times.to_pylist()]
    keys = [f"k{at}" for at in ats]
    return pa.table([pa.array(keys), times, pa.array(lists, SCHEMA.field("l").type), pa.array([v] * len(ats))], SCHEMA)


CASES = [
    (table_type, facts)
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for facts in ("key", "ordering", "partition", "no meta fields")
]
FACTS: dict[str, dict[str, Any]] = {
    "key": {"record_key": "at"},
    "ordering": {"ordering": "at"},
    "partition": {"partition_by": "at"},
    "no meta fields": {"record_key": "at", "properties": {"hoodie.populate.meta.fields": "false"}},
}


@handed("table_type, facts", CASES, [("shuffle", ("MERGE_ON_READ", "key"))])
def test_spark_writes_and_reads_milliseconds_as_this_process_does(
    spark: Any, tmp_path: Path, handover: str, table_type: str, facts: str
) -> None:
    tables = []
    for name in ("spark", "here"):
        (tmp_path / name).mkdir()
        create_in_millis(LocalStorage(str(tmp_path / name)), SCHEMA, table_type=table_type, **FACTS[facts])
        tables.append(HudiTable.open(str(tmp_path / name)))
    on, here = tables

    def write(operation: str, given: pa.Table) -> None:
        counts = [
            getattr(on, operation)(on_spark(spark, given, tmp_path)),
            getattr(here, operation)(given),
        ]
        assert len({(one.inserted, one.updated, one.deleted) for one in counts}) == 1

    write("bulk_insert", rows(NOON, NOON + 1, NOON + 2, OLD, v=1))
    write("upsert", rows(NOON + 1, NOON + 3, v=2))
    write("delete", rows(NOON + 2, v=3).select(["id", "at"]))
    from pyspark.errors import PySparkException

    stored = list(on.schema().names)
    found = on.scan().to_arrow()
    assert found.schema.field("at").type == pa.timestamp("ms", "UTC")
    keys = ["_hoodie_record_key", "_hoodie_partition_path"] if facts != "no meta fields" else []
    assert_same_rows(found.select([*keys, *stored]), here.scan().to_arrow().select([*keys, *stored]))
    assert len(found) == 4

    shown = collected(on.scan(columns=SCHEMA.names).to_spark(spark)).cast(SCHEMA)
    assert_same_rows(shown, found.select(SCHEMA.names).cast(SCHEMA))
    where = "at > TIMESTAMP '2026-01-01 12:00:00'"
    assert sorted(row["v"] for row in on.scan(where=where).to_spark(spark).collect()) == [2, 2]

    finer = rows(NOON, v=9).set_column(1, "at", pa.array([1_000 * NOON + 1], MICROS))
    for operation, given in (("upsert", finer), ("delete", finer.select(["id", "at"]))):
        with pytest.raises((HudiError, PySparkException), match=r"millisecond|MILLISECOND"):
            getattr(on, operation)(on_spark(spark, given, tmp_path))
    assert on.scan().to_arrow().num_rows == 4
