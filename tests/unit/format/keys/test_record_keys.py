"""A record key or a partition path could be spelled other than Apache Hudi spells it: the row is then lost to it.

Also: a partition path that leaves the table's folder, and a path whose values cannot be told back.
"""

import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.format.keys.record_keys import (
    DEFAULT_PARTITION,
    ESCAPED_CHARACTERS,
    KeySpec,
    check_partition_path,
    partition_paths,
    partition_values,
    record_keys,
    value_text,
)


def spec(
    record_key: tuple[str, ...] = ("k",),
    partition_by: tuple[str, ...] = (),
    *,
    is_composite: bool = False,
    is_hive_style: bool = False,
    is_url_encoded: bool = False,
) -> KeySpec:
    return KeySpec(record_key, partition_by, is_composite, is_hive_style, is_url_encoded)


def paths(
    values: Mapping[str, Sequence[str | None]], *, is_hive_style: bool = False, is_url_encoded: bool = False
) -> list[str]:
    table = pa.table({name: pa.array(column, pa.string()) for name, column in values.items()})
    of = spec(partition_by=tuple(values), is_hive_style=is_hive_style, is_url_encoded=is_url_encoded)
    return partition_paths(table, of).to_pylist()


@pytest.mark.parametrize(
    "array, texts",
    [
        (pa.array(["a", None, ""]), ["a", None, ""]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array(["b", "a", "b", None]).dictionary_encode(), ["b", "a", "b", None]),
        (pa.array([-1, None, 2**31 - 1], pa.int32()), ["-1", None, "2147483647"]),
        (pa.array([2**63 - 1], pa.int64()), ["9223372036854775807"]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([date(2026, 1, 2), None]), ["2026-01-02", None]),
        (pa.array([1.0, None, math.nan, -0.0, 0.0]), ["1.0", None, "NaN", "-0.0", "0.0"]),
        (pa.array([0.1, 3.0], pa.float32()), ["0.1", "3.0"]),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1, 5, UTC)], pa.timestamp("us", "UTC")), ["1000005"]),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ms")), ["1000"]),  # a column of timestamp-millis
        (pa.array([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ns")), ["1000000"]),
        (pa.array([decimal.Decimal("1.50"), None], pa.decimal128(5, 2)), ["1.50", None]),
        (pa.array([decimal.Decimal("-0.01"), decimal.Decimal("0.00")], pa.decimal128(5, 2)), ["-0.01", "0.00"]),
        (pa.array([decimal.Decimal("1E-10")], pa.decimal128(20, 10)), ["1E-10"]),
        (pa.array([decimal.Decimal("0.000001")], pa.decimal128(20, 6)), ["0.000001"]),
        (pa.array([decimal.Decimal("0")], pa.decimal128(20, 10)), ["0E-10"]),
        (pa.array([], pa.float64()), []),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_are_spelled_as_key_generators_spell_them(array: pa.Array, texts: list[str | None]) -> None:
    assert value_text(pa.chunked_array([array]), "c").to_pylist() == texts


def test_values_of_many_chunks_are_spelled_alike() -> None:
    column = pa.chunked_array([[1.0], [], [2.0, None], [1.0]], pa.float64())

    assert value_text(column, "c").to_pylist() == ["1.0", "2.0", None, "1.0"]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.binary(), pa.struct([("a", pa.int32())])], ids=str)
def test_types_that_cannot_be_keys_are_refused_by_name(kind: pa.DataType) -> None:
    with pytest.raises(Invalid, match="column 'c'"):
        value_text(pa.chunked_array([pa.nulls(1, kind)]), "c")


def test_a_simple_key_is_the_bare_value() -> None:
    assert record_keys(pa.table({"k": [7, 8]}), spec()).to_pylist() == ["7", "8"]


def test_a_composite_key_names_its_fields_in_their_order() -> None:
    table = pa.table({"b": ["x,y", None, ""], "a": [1, 2, 3]})

    keys = record_keys(table, spec(("a", "b"), is_composite=True))

    assert keys.to_pylist() == ["a:1,b:x,y", "a:2,b:__null__", "a:3,b:__empty__"]


def test_a_composite_key_of_one_field_names_it() -> None:
    assert record_keys(pa.table({"a": ["x"]}), spec(("a",), is_composite=True)).to_pylist() == ["a:x"]


@pytest.mark.parametrize("value", [None, ""])
def test_a_null_or_empty_key_is_refused_and_its_row_is_named(value: str | None) -> None:
    table = pa.table({"k": pa.chunked_array([["a"], ["b", value, value]], pa.string())})

    with pytest.raises(Invalid, match=r"found 2 null or empty; row 2 has"):
        record_keys(table, spec())


def test_a_composite_key_may_not_be_null_or_empty_throughout() -> None:
    table = pa.table({"a": [None, "x"], "b": ["", None]})

    with pytest.raises(Invalid, match=r"\(a, b\): expected a value in each row, found 1"):
        record_keys(table, spec(("a", "b"), is_composite=True))


def test_no_rows_have_no_keys_and_no_paths() -> None:
    empty = pa.table({"k": pa.array([], pa.string()), "p": pa.array([], pa.float64())})

    assert record_keys(empty, spec(("k",))).to_pylist() == []
    assert record_keys(empty, spec(("k", "p"), is_composite=True)).to_pylist() == []
    assert partition_paths(empty, spec(partition_by=("p",))).to_pylist() == []
    assert partition_paths(empty, spec()).to_pylist() == []


def test_a_table_without_partitions_has_one_path() -> None:
    assert partition_paths(pa.table({"k": ["a", "b"]}), spec()).to_pylist() == ["", ""]


def test_partition_paths_are_levels_of_values() -> None:
    assert paths({"p": ["a", "b"], "q": ["1", "2"]}) == ["a/1", "b/2"]
    assert paths({"p": ["a"], "q": ["1"]}, is_hive_style=True) == ["p=a/q=1"]


def test_null_and_empty_values_have_the_default_partition() -> None:
    assert paths({"p": [None, "", "a"]}) == [DEFAULT_PARTITION, DEFAULT_PARTITION, "a"]
    assert paths({"p": [None]}, is_hive_style=True, is_url_encoded=True) == [f"p={DEFAULT_PARTITION}"]


def test_partition_paths_of_many_chunks_share_one_dictionary() -> None:
    table = pa.table({"p": pa.chunked_array([["a"], [], ["b", "a"]], pa.string())})

    column = partition_paths(table, spec(partition_by=("p",)))

    assert pa.types.is_dictionary(column.type)
    assert column.to_pylist() == ["a", "b", "a"]
    assert sorted(column.combine_chunks().dictionary.to_pylist()) == ["a", "b"]


def test_url_encoding_escapes_what_hive_escapes_and_nothing_else() -> None:
    values = ["a/b", "a=b:c", "100%", "\x00\x1f\x7f", "\"#'*?\\{[]^", "a b}é中~.-_"]

    assert paths({"p": values}, is_url_encoded=True) == [
        "a%2Fb",
        "a%3Db%3Ac",
        "100%25",
        "%00%1F%7F",
        "%22%23%27%2A%3F%5C%7B%5B%5D%5E",
        "a b}é中~.-_",
    ]
    assert paths({"p": ["a/b"]}, is_url_encoded=True, is_hive_style=True) == ["p=a%2Fb"]


@pytest.mark.parametrize(
    "value", ["..", ".", "../x", "a/../b", "a//b", "/a", "a/", ".hoodie", ".hoodie/metadata", "a/.hoodie"]
)
def test_a_value_that_leaves_its_folder_is_refused(value: str) -> None:
    with pytest.raises(Invalid, match="partition path"):
        paths({"p": ["fine", value]})


@pytest.mark.parametrize("value", ["..", ".hoodie"])
def test_url_encoding_does_not_let_a_folder_out(value: str) -> None:
    with pytest.raises(Invalid, match="partition path"):
        paths({"p": [value]}, is_url_encoded=True)
    with pytest.raises(Invalid, match="urlencode" if value == ".hoodie" else "hive_style"):  # what helps
        paths({"p": [value]})
    assert paths({"p": [value]}, is_url_encoded=True, is_hive_style=True) == [f"p={value}"]


def test_the_name_of_the_list_of_partitions_is_no_partition() -> None:
    """The metadata table has the list under this key, and a partition's files under its path."""
    with pytest.raises(Invalid, match="hive_style"):
        paths({"p": ["fine", "__all_partitions__"]})
    assert paths({"p": ["__all_partitions__"]}, is_hive_style=True) == ["p=__all_partitions__"]
    assert paths({"p": ["a"], "q": ["__all_partitions__"]}) == ["a/__all_partitions__"]


@pytest.mark.parametrize("path", ["", "a", "a/b", "..a", "...", "a=..", "2026-11-21", DEFAULT_PARTITION])
def test_ordinary_partition_paths_pass(path: str) -> None:
    check_partition_path(path)


VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.lists(VALUES | st.sampled_from(list(ESCAPED_CHARACTERS)) | st.none(), min_size=1, max_size=3), st.booleans())
def test_values_can_be_told_from_an_encoded_path(values: list[str | None], is_hive_style: bool) -> None:
    columns = {f"c{i}": [value] for i, value in enumerate(values)}
    of = spec(partition_by=tuple(columns), is_url_encoded=True, is_hive_style=is_hive_style)
    try:
        (path,) = paths(columns, is_url_encoded=True, is_hive_style=is_hive_style)
    except Invalid:
        return  # a folder name that is refused

    assert partition_values(path, of) == {
        name: None if value == DEFAULT_PARTITION else value for name, (value,) in columns.items()
    }


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_value_of_the_only_column_can_be_told_from_a_plain_path(value: str) -> None:
    expected = None if value == DEFAULT_PARTITION else value

    assert partition_values(value, spec(partition_by=("p",))) == {"p": expected}
    assert partition_values(f"p={value}", spec(partition_by=("p",), is_hive_style=True)) == {"p": expected}


def test_a_path_that_does_not_tell_its_values_apart_states_none() -> None:
    of = spec(partition_by=("p", "q"))

    assert partition_values("a/b/c", of) == {}
    assert partition_values("a", of) == {}
    assert partition_values("", spec()) == {}


@pytest.mark.parametrize(
    "path, expected",
    [
        ("y=2024/p=a/b", {"y": "2024", "p": "a/b"}),
        ("y=a/b/p=c/y=d", {"y": "a/b", "p": "c/y=d"}),
        ("y=a/y=b/p=c", {"y": "a/y=b", "p": "c"}),
        ("y=a/p=b/p=c", {}),  # y is `a`, or `a/p=b`
        ("a/p=b/c", {}),
        ("y=a/b/c", {}),
    ],
)
def test_a_value_with_slashes_is_told_by_the_name_of_the_next_column(path: str, expected: dict[str, str]) -> None:
    assert partition_values(path, spec(partition_by=("y", "p"), is_hive_style=True)) == expected


@given(*[st.text("ab/=ypq", min_size=1)] * 3)
def test_a_path_with_names_tells_the_values_that_made_it_or_none(y: str, p: str, q: str) -> None:
    of = spec(partition_by=("y", "p", "q"), is_hive_style=True)

    assert partition_values(f"y={y}/p={p}/q={q}", of) in ({"y": y, "p": p, "q": q}, {})


@given(*[st.text("ab/=ypq") | st.sampled_from([None, DEFAULT_PARTITION])] * 3, st.booleans(), st.booleans())
def test_a_path_that_stands_for_columns_tells_their_values_or_is_refused(
    y: str | None, p: str | None, q: str | None, is_hive_style: bool, is_url_encoded: bool
) -> None:
    values = {"y": y, "p": p, "q": q}
    of = spec(partition_by=tuple(values), is_hive_style=is_hive_style, is_url_encoded=is_url_encoded)
    rows = pa.table({name: pa.array([value], pa.string()) for name, value in values.items()})
    try:
        (path,) = partition_paths(rows, of).to_pylist()
    except Invalid:
        return  # no folder can have such a name
    try:
        (same,) = partition_paths(rows, replace(of, is_left_out=True)).to_pylist()
    except Invalid:
        assert partition_values(path, of) != values
    else:
        assert same == path
        assert partition_values(path, of) == values


SLASHED = replace(spec(partition_by=("p",)), has_slashed_dates=True)


@pytest.mark.parametrize(
    "value, path", [("2026-01-05", "2026/01/05"), ("2026-01", "2026/01"), ("a", "a"), (None, DEFAULT_PARTITION)]
)
def test_dates_of_paths_can_have_slashes(value: str | None, path: str) -> None:
    """Seen: 1.2.0, of any text."""
    assert partition_paths(pa.table({"p": pa.array([value], pa.string())}), SLASHED).to_pylist() == [path]
    assert partition_values(path, SLASHED) == {"p": value}


def test_dates_with_slashes_are_encoded_first() -> None:
    encoded = replace(SLASHED, is_url_encoded=True)

    assert partition_paths(pa.table({"p": ["2026-01/05"]}), encoded).to_pylist() == ["2026/01%2F05"]
    assert partition_values("2026/01%2F05", encoded) == {"p": "2026-01/05"}


@pytest.mark.parametrize("value", ["2026/01/05", "-5", "a--b"])
def test_a_text_that_its_path_with_slashes_would_not_tell_is_refused(value: str) -> None:
    with pytest.raises(Invalid, match="change the values"):
        partition_paths(pa.table({"p": [value]}), SLASHED)
