"""Rows of a data table of HFiles that Apache Hudi wrote could be read otherwise than they were, or lost by a write.

Apache Hudi's queries do not read such tables, so that their rows are those of the inputs: 40 rows are inserted, rows 35
to 44 upserted, rows 0 to 2 deleted (`tests/interop/test_hfile_tables.py` has the same statements).
"""

import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows

FOLDER = Path(__file__).parent / "hfile_tables"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
OPTIONS = {"cow_hfile_v6_h0150": BUCKETS, "cow_hfile_v9_h120": {}, "mor_hfile_v9_h120": {}}


def unpacked(name: str, folder: Path) -> tuple[HudiTable, pa.Table]:
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(folder)
    return HudiTable.open(folder / "t", options=OPTIONS[name]), pq.read_table(folder / "expected.parquet")


@pytest.mark.parametrize("name", OPTIONS)
def test_rows_are_those_that_were_written_and_stay_so(tmp_path: Path, name: str) -> None:
    table, model = unpacked(name, tmp_path)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model, same_types=False)
    assert table.scan(where="part = 'p1' and ts = 2").count() == 5
    assert_same_rows(table.scan(columns=["id"]).to_arrow(), model.select(["id"]))
    if name != "cow_hfile_v6_h0150":  # a Bloom filter in an HFile rules files out
        assert table.lookup(["k0036", "not there"]).num_rows == 1

    changed = model.slice(0, 5).set_column(2, "ts", pa.array([9] * 5))
    table.upsert(changed.cast(table.schema()))
    table.delete(model.slice(5, 3).cast(table.schema()))
    model = pa.concat_tables([changed.cast(model.schema), model.slice(8)])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model, same_types=False)
    if table.table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        assert_same_rows(table.scan(query="read_optimized", meta_fields=False).to_arrow(), model, same_types=False)
    assert pc.all(pc.match_substring(pa.array(table.scan().files()), ".hfile")).as_py()
