"""A write to a bootstrapped table could lose the columns that only the source holds, or mix them up with other rows;
one to a table of ORC files could write files that are none.

The rows after each step are those of a model: the rows that the table had, changed in the same way.
"""

from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, NotFound, Unsupported
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables, base_file_names, with_long

WRITTEN = tuple(name for name in base_file_names() if "_lance_" not in name and name != "cow_orc_v6_h0150")
"""All but tables of Lance files, which have other columns, and one of buckets whose number it does not say."""
QUICK = (
    "cow_bootstrap_meta_v9_h120",
    "mor_bootstrap_mixed_v6_h0150",
    "mor_orc_v9_h120",
    "cow_drop_part_v9_h120",
    "mor_drop_part_v6_h0150",
)
BY_ID = {"hoodie.clustering.plan.strategy.sort.columns": "id"}


def opened(golden: GoldenTables, path: Path, name: str) -> HudiTable:
    """A copy of a golden table. Its source is not beside it any more."""
    source = golden.get(name).path.with_name(f"{name}.source")
    if not source.exists():
        return HudiTable.open(path)
    return HudiTable.open(path, options={"hoodie.bootstrap.base.path": source.as_uri()})


def changed(rows: pa.Table) -> pa.Table:
    rows = rows.set_column(rows.column_names.index("name"), "name", pa.array(["changed"] * len(rows)))
    later = pc.add(rows.column("ts").fill_null(0), 100_000)
    return rows.set_column(rows.column_names.index("ts"), "ts", later)


@pytest.mark.parametrize("name", with_long(WRITTEN, QUICK))
def test_rows_are_written_whole(golden: GoldenTables, unpacked: object, name: str) -> None:
    assert callable(unpacked)
    table = opened(golden, unpacked(name), name)
    model = table.scan(meta_fields=False).to_arrow()

    is_changed = pc.match_substring(model.column("id"), "3")
    updates = changed(model.filter(is_changed))
    new = updates.slice(0, 2)
    new = new.set_column(new.column_names.index("id"), "id", pa.array(["new1", "new2"]))
    result = table.upsert(pa.concat_tables([updates, new]))
    assert (result.updated, result.inserted) == (len(updates), 2)
    model = pa.concat_tables([model.filter(pc.invert(is_changed)), updates, new])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model)

    is_gone = pc.match_substring(model.column("id"), "1")
    table.delete(model.filter(is_gone))
    model = model.filter(pc.invert(is_gone))
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model)

    table.update(set={"name": "'by a statement'"}, where="part = 'p1'")
    names = pc.if_else(pc.equal(model.column("part"), "p1"), "by a statement", model.column("name"))
    model = model.set_column(model.column_names.index("name"), "name", names)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model)

    if table.table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        assert_same_rows(table.scan(query="read_optimized", meta_fields=False).to_arrow(), model)
    assert table.cluster(options=BY_ID).file_groups
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model)


def test_an_index_of_a_bootstrapped_table_knows_the_columns_of_the_source(
    golden: GoldenTables, unpacked: object
) -> None:
    assert callable(unpacked)
    name = "mor_bootstrap_meta_v9_h120"
    table = opened(golden, unpacked(name), name)
    wholes = {query: table.scan(query=query).to_arrow() for query in ("snapshot", "read_optimized")}
    table.build_index("column_stats", columns=["ts", "i"])
    table.build_index("record_index")
    table.build_index("secondary_index", columns=["name"], name="by_name")
    one = wholes["snapshot"].column("name").drop_null()[0].as_py()
    for where in ("i > 0", "ts > 100", "ts <= 100", "i is null", "id = 'k0012'", f"name = '{one}'"):
        for query, whole in wholes.items():
            scan = table.scan(where=where, query=query)
            assert scan._plan.predicate is not None
            assert_same_rows(scan.to_arrow(), scan._plan.predicate.filter(whole))


def test_a_source_that_is_gone_says_where_it_was_looked_for(golden: GoldenTables, unpacked: object) -> None:
    assert callable(unpacked)
    path = unpacked("cow_bootstrap_meta_v9_h120")
    with pytest.raises(NotFound, match=r"bootstrapped from 'file:.*found none; say where the folder is now"):
        HudiTable.open(path).scan(as_of="00000000000001").to_arrow()


def test_lance_files_without_their_package_are_refused_before_a_write(
    unpacked: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(unpacked)
    table = HudiTable.open(unpacked("cow_lance_v9_h120"))
    before = table.timeline()
    monkeypatch.setattr("pyhudi.txn.action.session.find_spec", lambda name: None)
    with pytest.raises(Unsupported, match=r"pip install 'pyhudi\[lance\]'"):
        table.upsert(table.schema().empty_table())
    assert table.timeline() == before


@pytest.mark.skipif(find_spec("lance") is None, reason="the package pylance is not there")
@pytest.mark.parametrize("name", ["cow_lance_v9_h120", "mor_lance_v9_h120"])
def test_rows_of_lance_files_are_written_whole(unpacked: object, name: str) -> None:
    assert callable(unpacked)
    table = HudiTable.open(unpacked(name))
    model = table.scan(meta_fields=False).to_arrow().sort_by("id")

    updates = changed(model.slice(0, 5))
    assert table.upsert(updates).updated == 5
    table.delete(model.slice(5, 3))
    model = pa.concat_tables([updates, model.slice(8)])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model)
    if table.table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        assert_same_rows(table.scan(query="read_optimized", meta_fields=False).to_arrow(), model)
    assert any(path.endswith(".lance") for path in table.scan().files())
