"""An index that Apache Hudi built could be told otherwise by our writes than by the data files, or be dropped.

First what Apache Hudi's own indexes say is compared with the files, then after each of several writes of ours.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.storage.local import LocalStorage
from pyhudi.table.facts.config import table_config
from pyhudi.table.facts.properties_file import read_table_properties
from tests.support.golden_tables import GoldenTables
from tests.support.metadata_indexes import index_problems

TABLES = [
    "mor_mdt_all_v6_h0150", "mor_mdt_all_v8_h102", "cow_mdt_all_v9_h120", "mor_partitioned_rli_v9_h120",
    "mor_secondary_index_v9_h120", "cow_expr_index_v8_h102", "mor_expr_index_v8_h102",
    *(
        pytest.param(name, marks=pytest.mark.long)
        for name in (
            "mor_record_index_v6_h0150", "mor_mdt_all_v9_h120", "mor_record_index_v9_h120",
            "mor_secondary_index_v8_h102",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_what_apache_hudi_indexed_stays_true_through_our_writes(
    golden: GoldenTables, name: str, tmp_path: Path
) -> None:
    shutil.copytree(golden.get(name).path, tmp_path / "table")
    storage = LocalStorage(str(tmp_path / "table"))
    before = set(table_config(read_table_properties(storage), path=name).metadata_partitions)
    assert index_problems(storage) == []

    table = HudiTable.open(tmp_path / "table")
    rows = table.scan(meta_fields=False).to_arrow()
    table.upsert(rows.slice(0, 3))
    assert index_problems(storage) == []
    table.delete(rows.slice(1, 2))
    assert index_problems(storage) == []
    table.upsert(pa.concat_tables([rows.slice(1, 1), rows.slice(4, 2)]))
    assert index_problems(storage) == []
    assert set(table_config(read_table_properties(storage), path=name).metadata_partitions) == before
