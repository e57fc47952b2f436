"""A row could lack the columns that its base file does not hold, or get those of another row.

The tables have ORC or Lance files, or files that a bootstrap left without columns of their own, or files without their
partition columns. Answers are those of Apache Hudi, but for two defects of 0.15.0 in incremental queries: it shows
nulls in all columns of rows that a bootstrap left in their source, and in partition columns that files lack.
"""

from importlib.util import find_spec

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, Unsupported
from tests.golden.test_tables import our_answer
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenAnswer, GoldenTables, base_file_names, golden_answers, with_long

NAMES = tuple(name for name in base_file_names() if "_lance_" not in name or find_spec("lance"))
"""Lance files are read where the package `pylance` is there."""
QUICK = ("cow_bootstrap_mixed_v8_h102", "mor_bootstrap_meta_v9_h120", "cow_drop_part_v9_h120", "mor_orc_v9_h120")
NULL_OF_SOURCE = ("mor_bootstrap_meta_v6_h0150", "mor_bootstrap_mixed_v6_h0150")
NULL_OF_PATH = ("cow_drop_part_v6_h0150",)

ANSWERS = [
    pytest.param(answer, id=str(answer), marks=() if name in QUICK else pytest.mark.long)
    for name in NAMES
    for answer in golden_answers(name)
]


def as_0_15_shows(rows: pa.Table, answer: GoldenAnswer) -> pa.Table:
    """The rows with the nulls that 0.15.0 shows by mistake."""
    if answer.query != "incremental":
        return rows
    if answer.table in NULL_OF_PATH:
        return rows.set_column(rows.column_names.index("part"), "part", pa.nulls(len(rows), pa.string()))
    if answer.table in NULL_OF_SOURCE:
        is_source = pc.equal(rows.column("_hoodie_commit_time"), "00000000000001")
        for at, field in enumerate(rows.schema):
            if not field.name.startswith("_hoodie_"):
                nothing = pa.nulls(1, field.type)[0]
                rows = rows.set_column(at, field, pc.if_else(is_source, nothing, rows.column(at)))
    return rows


@pytest.mark.parametrize("answer", ANSWERS)
def test_our_answer_is_the_one_of_apache_hudi(golden: GoldenTables, answer: GoldenAnswer) -> None:
    table = golden.get(answer.table)

    assert_same_rows(as_0_15_shows(our_answer(table, answer), answer), table.expected(answer))


@pytest.mark.parametrize("name", with_long(NAMES, QUICK))
def test_filters_and_columns_read_no_less_than_they_need(golden: GoldenTables, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    whole = table.scan().to_arrow()
    assert table.scan().count() == whole.num_rows
    part = table.partition_by[0]
    for column in ("ts", "id", part, "_hoodie_file_name"):
        assert_same_rows(table.scan(columns=[column]).to_arrow(), whole.select([column]))
    for where in (f"{part} = 'p1'", "ts > 100", "ts is null", "id = 'k0012'", f"{part} = 'p2' and ts <= 200"):
        scan = table.scan(where=where)
        assert scan._plan.predicate is not None
        assert_same_rows(scan.to_arrow(), scan._plan.predicate.filter(whole))
        assert scan.count() == scan.to_arrow().num_rows


@pytest.mark.parametrize("name", with_long(NAMES, QUICK))
def test_a_key_is_found_in_the_file_that_holds_its_columns(golden: GoldenTables, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    whole = table.scan().to_arrow()
    keys = whole.column("_hoodie_record_key").slice(0, 7).to_pylist()

    found = table.lookup([*keys, "not there"])

    wanted = whole.filter(pc.is_in(whole.column("_hoodie_record_key"), pa.array(keys)))
    assert_same_rows(found, wanted.select(found.column_names))


@pytest.mark.skipif(find_spec("lance") is not None, reason="the package is there")
def test_lance_files_say_what_reads_them(golden: GoldenTables) -> None:
    with pytest.raises(Unsupported, match=r"pip install 'pyhudi\[lance\]'"):
        HudiTable.open(golden.get("cow_lance_v9_h120").path).scan().to_arrow()
