"""A write to a merge-on-read table of Apache Hudi could lose rows of its, bring deleted ones back, or not be seen.

Each golden table of versions 8 and 9 is written to, with blocks of each kind in turn; its rows before, changed as the
writes say, must be its rows after.
"""

from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, golden_names

REFUSED = {
    **dict.fromkeys(
        ("mor_cdc_data_before_after_v9_h120", "mor_cdc_op_key_only_v9_h120", "mor_cdc_compact_v9_h120"),
        "hoodie.table.cdc.enabled='true'",
    ),
    **dict.fromkeys(("mor_nondefaults_v9_h120", "mor_partial_payload_v9_h120"), "hoodie.table.partial.update.mode"),
    "mor_delete_field_v9_h120": "hoodie.record.merge.property.hoodie.payload.delete.field",
    **dict.fromkeys(
        (
            "mor_logonly_compact_v9_h120", "mor_logonly_v8_h102", "mor_logonly_v9_h120", "mor_nbcc_v8_h102",
            "mor_nbcc_v9_h120",
        ),
        "has logs only",
    ),
    "mor_no_meta_v9_h120": "hoodie.populate.meta.fields='false'",
}  # fmt: skip
RENAMED = "mor_schema_on_read_v9_h120"  # not even read
NAMES = [n for n in golden_names() if "mor_" in n and ("_v8_" in n or "_v9_" in n) and n not in (*REFUSED, RENAMED)]
FORMATS = dict(zip(NAMES, cycle(["parquet", "avro", "hfile"]), strict=False))


@pytest.mark.parametrize("name", NAMES)
def test_rows_after_writes_are_those_before_as_the_writes_change_them(tmp_path: Path, name: str) -> None:
    options = {"hoodie.logfile.data.block.format": FORMATS[name]}
    table = HudiTable.open(GoldenTables(tmp_path).get(name).path, options=options)
    before = table.scan(meta_fields=True).to_arrow()
    assert len(before) > 3
    rows = before.drop_columns(
        [n for n in before.column_names if n.startswith("_hoodie_") and n != "_hoodie_is_deleted"]
    )

    changed, gone, left = rows.slice(0, 2), rows.slice(2, 1), rows.slice(3)
    table.upsert(changed)
    table.delete(gone.select([*dict.fromkeys([*table.record_key, *table.partition_by])]))

    after = table.scan(meta_fields=True).to_arrow()
    assert_same_rows(after.select(rows.column_names), pa.concat_tables([changed, left]))
    newest = table.timeline()[-2:]
    assert [i.action for i in newest] == ["deltacommit"] * 2
    assert pc.sum(pc.equal(after.column("_hoodie_commit_time"), newest[0].requested)).as_py() == 2
    assert_same_rows(
        table.scan(as_of=newest[0].requested, meta_fields=False).to_arrow().select(rows.column_names), rows
    )


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    table = HudiTable.open(GoldenTables(tmp_path).get(name).path)
    rows = table.scan(meta_fields=False).to_arrow()
    timeline, files = table.timeline(), table.scan().files()

    for write in (table.upsert, table.delete):
        with pytest.raises(Unsupported, match=REFUSED[name]):
            write(rows)

    assert (table.timeline(), table.scan().files()) == (timeline, files)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), rows)


def test_new_tables_are_of_a_known_type(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="table_type='MERGE_ON_WRITE': expected COPY_ON_WRITE or MERGE_ON_READ"):
        HudiTable.create(tmp_path / "t", name="t", record_key="id", table_type="MERGE_ON_WRITE")
