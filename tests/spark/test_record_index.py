"""By a record index, a write on Spark could find other keys than the same write in this process.

Each write is done twice, on Spark as on a cluster and with the same rows as Arrow; rows, counts and statements must be
equal, and the index must say what the data files say.
"""

from pathlib import Path
from typing import Any

import pytest

from pyhudi.storage.open import open_storage, parse_location
from tests.spark.test_indexes import SMALL, first_rows, moving_rows, rows
from tests.spark.test_writes import Twins
from tests.support.metadata_indexes import index_problems

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "index, table_type, moves",
    [
        pytest.param("GLOBAL_RECORD_LEVEL_INDEX", "COPY_ON_WRITE", "true", marks=pytest.mark.long),
        ("GLOBAL_RECORD_LEVEL_INDEX", "MERGE_ON_READ", "true"),
        pytest.param("RECORD_INDEX", "COPY_ON_WRITE", "false", marks=pytest.mark.long),
        pytest.param("RECORD_LEVEL_INDEX", "MERGE_ON_READ", "false", marks=pytest.mark.long),
    ],
)
def test_record_indexes_on_a_cluster_find_what_they_find_in_this_process(
    spark: Any, tmp_path: Path, by_shuffle: None, monkeypatch: pytest.MonkeyPatch, index: str, table_type: str,
    moves: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("pyhudi.engine.spark.write.record_lookup.KEYS_A_TASK", 10)
    kind = "record.level.index" if index == "RECORD_LEVEL_INDEX" else "global.record.level.index"
    by = {
        "hoodie.index.type": index,
        f"hoodie.metadata.{kind}.enable": "true",
        f"hoodie.metadata.{kind}.min.filegroup.count": "3",
        "hoodie.record.index.update.partition.path": moves,
    }
    twins = Twins(
        spark, tmp_path, properties={**SMALL, **by}, record_key="id", partition_by="part", ordering="rank",
        table_type=table_type, table_version=9,
    )  # fmt: skip
    twins.write("upsert", first_rows())
    twins.write("upsert", moving_rows())
    if index == "RECORD_LEVEL_INDEX":
        assert twins.write("delete", moving_rows().slice(0, 9).select(["id", "part"])).deleted > 0
    else:
        keys = twins.here.scan(["id"]).to_arrow().column("id").to_pylist()
        assert len(keys) == len(set(keys)) == 33
        twins.write("delete", rows(("k00", "", 0, 0), ("new", "", 0, 0), ("none", "", 0, 0)).select(["id"]))
    twins.write("upsert", first_rows())
    for table in (twins.here, twins.on_spark):
        assert index_problems(open_storage(parse_location(table.path, None))) == []
