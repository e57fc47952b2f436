"""A write to a merge-on-read table of Apache Hudi could lose rows of its, bring deleted ones back, or not be seen.

Each golden table of versions 6, 8 and 9 is written to, with blocks of each kind in turn; its rows before, changed as
the writes say, must be its rows after.
"""

from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.format.timeline.records import WriteStat
from pyhudi.table.view.commits import read_commit
from tests.golden.test_buckets import bucket_options
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, golden_names, half_long

REFUSED = {
    **dict.fromkeys(("mor_nondefaults_v6_h0150", "mor_partial_payload_v6_h0150"), "hoodie.compaction.payload.class"),
    **dict.fromkeys(
        ("mor_logonly_compact_v9_h120", "mor_logonly_v6_h0150", "mor_logonly_v8_h102", "mor_logonly_v9_h120"),
        "has logs only",
    ),
}  # fmt: skip
NAMES = [
    n
    for n in golden_names()
    if "mor_" in n and any(f"_v{version}_" in n for version in (5, 6, 8, 9)) and n not in REFUSED
]
BUCKETED = [name for name in NAMES if any(kind in name for kind in ("bucket", "nbcc", "consistent"))]
FORMATS = dict(zip(NAMES, cycle(["parquet", "avro", "hfile"]), strict=False))


@pytest.mark.parametrize("name", half_long(NAMES, start=1))
def test_rows_after_writes_are_those_before_as_the_writes_change_them(tmp_path: Path, name: str) -> None:
    options = {"hoodie.logfile.data.block.format": FORMATS[name]}
    golden = GoldenTables(tmp_path).get(name)
    if name in BUCKETED:
        options |= bucket_options(golden)
    table = HudiTable.open(golden.path, options=options)
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
    if table.properties.get("hoodie.populate.meta.fields") != "false":
        assert pc.sum(pc.equal(after.column("_hoodie_commit_time"), newest[0].requested)).as_py() == 2
    assert_same_rows(
        table.scan(as_of=newest[0].requested, meta_fields=False).to_arrow().select(rows.column_names), rows
    )


@pytest.mark.parametrize("name", BUCKETED)
def test_new_rows_join_the_groups_that_the_bucket_index_of_apache_hudi_made(tmp_path: Path, name: str) -> None:
    """A group a bucket, and none of our own beside them; what no base file was read for is told apart on reading."""
    golden = GoldenTables(tmp_path).get(name)
    table = HudiTable.open(golden.path, options=bucket_options(golden))
    before = table.scan(meta_fields=False).to_arrow()
    groups = live_groups(table)
    rename = pc.binary_join_element_wise(before.column("id").cast(pa.string()), "-new", "")
    new = before.set_column(before.column_names.index("id"), before.schema.field("id"), rename)

    table.insert(new)
    table.upsert(new)

    assert_same_rows(table.scan(meta_fields=False).to_arrow(), pa.concat_tables([before, new]))
    assert groups <= live_groups(table)
    numbers = [(path, file_id[:8]) for path, file_id in live_groups(table)]
    assert len(numbers) == len(set(numbers))
    assert all(stat.is_log for stat in newest_stats(table) if (stat.partition_path, stat.file_id) in groups)


@pytest.mark.parametrize("name", BUCKETED)
@pytest.mark.parametrize("index", ["SIMPLE", None])
def test_an_index_that_looks_keys_up_is_refused_where_buckets_place_rows(
    tmp_path: Path, name: str, index: str | None
) -> None:
    """Rows would come to lie in groups, and deletes miss rows, that no write by bucket looks at."""
    table = HudiTable.open(GoldenTables(tmp_path).get(name).path)
    rows = table.scan(meta_fields=False).to_arrow()
    options = {} if index is None else {"hoodie.index.type": index}
    timeline = table.timeline()

    for write in (table.upsert, table.insert, table.bulk_insert, table.delete, table.insert_overwrite):
        with pytest.raises(Invalid, match=r"expected options 'hoodie\.index\.type'='BUCKET'"):
            write(rows, options=options)

    assert table.timeline() == timeline


@pytest.mark.parametrize("name", [name for name in BUCKETED if "nbcc" not in name])
def test_another_count_of_buckets_is_refused(tmp_path: Path, name: str) -> None:
    golden = GoldenTables(tmp_path).get(name)
    given = {**bucket_options(golden), "hoodie.bucket.index.num.buckets": "64"}
    table = HudiTable.open(golden.path, options=given)
    rows = table.scan(meta_fields=False).to_arrow()

    if "consistent" in name:  # each ring says itself how many there are
        table.upsert(rows)
        return
    with pytest.raises(Invalid, match="expected keys of bucket"):
        table.upsert(rows)


def live_groups(table: HudiTable) -> set[tuple[str, str]]:
    snapshot = table._access.snapshot()
    return {(path, piece.file_id) for path in snapshot.listing.partitions() for piece in snapshot.slices(path)}


def newest_stats(table: HudiTable) -> list[WriteStat]:
    snapshot = table._access.snapshot()
    metadata = read_commit(snapshot.storage, snapshot.timeline, snapshot.timeline.completed_writes[-1])
    return [stat for of in metadata.partition_to_write_stats.values() for stat in of]


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


@pytest.mark.parametrize("name", ["mor_nondefaults_v9_h120", "mor_partial_payload_v9_h120"])
def test_nulls_leave_what_apache_hudi_stored(tmp_path: Path, name: str) -> None:
    """Two rows of each key: what one of them lacks is the other's, and what both lack is what was stored."""
    table = HudiTable.open(GoldenTables(tmp_path).get(name).path)
    before = table.scan(meta_fields=False).to_arrow().sort_by("id")
    kept = {*table.record_key, *table.partition_by, *table.ordering}
    first, *others = [column for column in before.column_names if column not in kept]
    assert others

    def lacking(*names: str) -> pa.Table:
        columns = [pa.nulls(len(before), f.type) if f.name in names else before.column(f.name) for f in before.schema]
        return pa.table(columns, schema=before.schema)

    table.upsert(pa.concat_tables([lacking(*others), lacking(first, *others)]))

    assert_same_rows(table.scan(meta_fields=False).to_arrow(), before)
    assert all(stat.is_log for stat in newest_stats(table))
    table.compact()
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), before)


def test_rows_that_the_table_marks_as_deletes_delete(tmp_path: Path) -> None:
    table = HudiTable.open(GoldenTables(tmp_path).get("mor_delete_field_v9_h120").path)
    property_of = "hoodie.record.merge.property.hoodie.payload.delete."
    column, marker = table.properties[f"{property_of}field"], table.properties[f"{property_of}marker"]
    before = table.scan(meta_fields=False).to_arrow().sort_by("id")
    gone = before.slice(0, 2)
    at = before.column_names.index(column)

    table.upsert(gone.set_column(at, before.schema.field(at), pa.array([marker] * 2, before.schema.field(at).type)))

    assert_same_rows(table.scan(meta_fields=False).to_arrow(), before.slice(2))
    assert [stat.num_deletes for stat in newest_stats(table)]
    table.compact()
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), before.slice(2))
