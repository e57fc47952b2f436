"""A definition of an index on an expression could be taken for what it is not, and the index kept by it be untrue."""

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.kinds.expression_index import BloomShape, expression_index, is_expression_index
from pyhudi.predicate.resolve import parse_value
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.prune.indexed_expression import parse_indexed_expression
from pyhudi.versions import VERSIONS

SCHEMA = pa.schema(
    [("ts", pa.int64()), ("name", pa.string()), ("part", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
)


def definition(function: str, column: str, flavour: str = "column_stats", **options: str) -> IndexDefinition:
    return IndexDefinition("expr_index_i", flavour, function, (column,), {"expr": function, **options}, "V1")


def test_a_definition_of_apache_hudi_is_what_it_says() -> None:
    found = expression_index(definition("from_unixtime", "ts", format="yyyy"), SCHEMA)
    assert (found.source, found.type, found.bloom) == ("ts", pa.string(), None)
    shape = expression_index(definition("lower", "name", "bloom_filters", numentries="9", filtertype="SIMPLE"), SCHEMA)
    assert shape.bloom == BloomShape("SIMPLE", entries=9)


@pytest.mark.parametrize(
    "of, text",
    [
        (definition("trim", "name", trimString="x"), "trim(BOTH 'x' FROM name)"),
        (definition("ltrim", "name"), "ltrim(name)"),
        (
            definition("regexp_replace", "name", pattern="(\\d)'", replacement="$1"),
            "regexp_replace(name, '(\\\\d)\\'', '$1')",
        ),
        (definition("regexp_extract", "name", pattern="a(b)", idx="1"), "regexp_extract(name, 'a(b)')"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_definition_and_the_text_of_a_predicate_are_the_same_expression(of: IndexDefinition, text: str) -> None:
    found = parse_indexed_expression(text, SCHEMA)
    assert {"expr": found.function, **found.options} == of.options
    assert expression_index(of, SCHEMA).node == parse_value(text, SCHEMA)


@pytest.mark.parametrize(
    "of, error, text",
    [
        (definition("lower", "nobody"), Invalid, "no column 'nobody'"),
        (definition("to_the_moon", "name"), Invalid, "expected a function that an index can be of"),
        (definition("split", "name", pattern=","), Unsupported, "its values are lists"),
        (definition("to_timestamp", "name"), Unsupported, "its values are times"),
        (definition("to_date", "name", format="yyyy"), Unsupported, "to_date with format is not computed"),
        (definition("regexp_replace", "name", pattern="a"), Invalid, "expected the option replacement"),
        (definition("regexp_replace", "name", pattern="(?i)a", replacement=""), Unsupported, "by this pattern"),
        (definition("regexp_extract", "name", pattern="a", idx="1"), Invalid, "the pattern has 0"),
        (definition("date_format", "at"), Invalid, "expected the option format"),
        (definition("date_add", "at", days="many"), Invalid, "expected a whole number as days, found 'many'"),
        (definition("hour", "ts"), Invalid, "hour takes a timestamp"),
        (definition("identity", "part"), Unsupported, "is double, of which this release keeps no column_stats"),
        (definition("to_date", "at", "bloom_filters"), Unsupported, "keeps no bloom_filters"),
        (definition("lower", "name", fpp="0.1"), Invalid, "expected no fpp for an index of statistics"),
        (definition("lower", "name", "bloom_filters", fpp="2"), Invalid, "false positive rate"),
        (definition("lower", "name", "bitmap"), Invalid, "expected an index of column_stats or bloom_filters"),
        (IndexDefinition("expr_index_i", "column_stats", "lower", ("name", "ts")), Invalid, "expected one column"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_a_definition_says_and_nobody_can_keep_is_named(
    of: IndexDefinition, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        expression_index(of, SCHEMA)


def test_both_names_of_such_partitions_are_known() -> None:
    assert {row.expression_prefix for row in VERSIONS.values() if not row.is_experimental} == {"expr_index_"}
    assert VERSIONS[7].expression_prefix == "func_index_"
    assert all(map(is_expression_index, ("func_index_a", "expr_index_a")))
    assert not is_expression_index("secondary_index_a")


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize(
    "text, first, later, where, ids",
    [
        ("length(c)", pa.array(["é", "ab"]), pa.array([b"\xff\xff"]), "length(c) = 2", ["a", "b", "z"]),
        (
            "from_unixtime(c)",
            pa.array([16777217, 5], pa.int32()),
            pa.array([1.5], pa.float32()),
            "from_unixtime(c) = '1970-07-14 04:20:16'",
            ["a"],
        ),
    ],
)
def test_an_index_goes_where_its_column_becomes_another_type(
    kind: str, text: str, first: pa.Array, later: pa.Array, where: str, ids: list[str]
) -> None:
    table = typed_table(kind, first, text)
    table.upsert(pa.table({"id": ["z"], "p": ["z"], "v": [1], "c": later}))
    assert table.scan(where=where).to_arrow()["id"].to_pylist() == ids
    assert table.scan(where=where).explain().indexes == ()


@pytest.mark.parametrize("text, where", [("from_unixtime(c)", "from_unixtime(c) < '1980'"), ("c", "c < 1")])
def test_an_index_stays_where_its_column_of_whole_numbers_widens(text: str, where: str) -> None:
    table = typed_table("COPY_ON_WRITE", pa.array([0, 2**31 - 1], pa.int32()), text)
    table.upsert(pa.table({"id": ["z"], "p": ["z"], "v": [1], "c": [2**32]}))
    scan = table.scan(where=where)
    assert scan.to_arrow()["id"].to_pylist() == ["a"]
    assert "expr_index_i" in str(scan.explain())


def typed_table(kind: str, values: pa.Array, expression: str) -> HudiTable:
    """Two rows of two partitions, with bounds and filters of an expression over their column c."""
    table = HudiTable.create(
        "t", name="t", record_key="id", partition_by="p", ordering="v", table_type=kind, storage=MemoryStorage()
    )
    table.bulk_insert(pa.table({"id": ["a", "b"], "p": ["x", "y"], "v": [1, 1], "c": values}))
    table.build_index("expr_index", name="i", expression=expression)
    table.build_index("bloom_filters", name="filters", expression=expression)
    return table
