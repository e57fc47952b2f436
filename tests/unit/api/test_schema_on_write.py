"""A write that changes the schema could leave rows that nobody can read any more, or that read as something else:
rows of the files that it rewrote, of those that it did not touch, or of the past."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable, Invalid
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import StepClock, problems_on, seeded_uuids
from tests.support.promotions import KEYS, WITHIN_OTHERS, WRITABLE, Promotion, rows


def new_table(storage: MemoryStorage | None = None, **facts: Any) -> HudiTable:
    given: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts"}
    return HudiTable.create(
        "", name="t", storage=storage or MemoryStorage(), clock=StepClock(), random=seeded_uuids(3),
        **{**given, "properties": {"hoodie.index.bloom.num_entries": "10"}, **facts},
    )  # fmt: skip


def read(table: HudiTable, **asked: Any) -> dict[tuple[str, str], Any]:
    found = table.scan(["id", "city", "c"], **asked).to_arrow()
    return {(row["city"], row["id"]): row["c"] for row in found.to_pylist()}


def stored(values: Sequence[Any], kind: pa.DataType, city: str) -> dict[tuple[str, str], Any]:
    return {(city, key): value for key, value in zip(KEYS, pa.array(list(values), kind).to_pylist(), strict=True)}


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("promotion", WRITABLE, ids=str)
def test_rows_of_before_read_as_the_new_type_whether_their_file_was_written_again_or_not(
    promotion: Promotion, version: int
) -> None:
    storage = MemoryStorage()
    table = new_table(storage, table_version=version)
    for city in ("touched", "untouched"):
        first = table.bulk_insert(rows(promotion.before, promotion.stored, KEYS, city))

    result = table.upsert(rows(promotion.after, promotion.new, ("k0", "new"), "touched"))

    assert (result.inserted, result.updated, result.files) == (1, 1, 1)
    assert table.schema().field("c").type == promotion.after
    expected = stored(promotion.read, promotion.after, "touched") | stored(promotion.read, promotion.after, "untouched")
    of_new = pa.array(list(promotion.new), promotion.after).to_pylist()
    expected |= {("touched", "k0"): of_new[0], ("touched", "new"): of_new[1]}
    assert read(table) == expected
    assert table.scan(as_of=first.requested).to_arrow().schema.field("c").type == promotion.before
    past = stored(promotion.stored, promotion.before, "touched") | stored(
        promotion.stored, promotion.before, "untouched"
    )
    assert read(table, as_of=first.requested) == past
    assert table.incremental(None, first.completed).to_arrow().schema.field("c").type == promotion.after
    # The next write, of rows as they came before, reads the file in its new type again.
    fill = {"hoodie.write.set.null.for.missing.columns": "true"}
    table.upsert(rows(promotion.before, promotion.stored[3:], ("k3",), "touched"), options=fill)
    assert read(table) == expected
    assert problems_on(storage, has_metadata_table=True) == []


@pytest.mark.parametrize("promotion", WITHIN_OTHERS, ids=str)
def test_types_within_others_are_not_widened_by_us_but_read_where_another_writer_did(
    promotion: Promotion, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table()
    for city in ("touched", "untouched"):
        table.bulk_insert(rows(promotion.before, promotion.stored, KEYS, city))
    wider = rows(promotion.after, promotion.new, ("k0", "new"), "touched")
    with pytest.raises(Invalid, match="which Apache Hudi cannot read within structs, lists and maps"):
        table.upsert(wider)

    monkeypatch.setattr("pyhudi.write.input.schema.is_within_another", lambda path: False)
    table.upsert(wider)
    expected = stored(promotion.read, promotion.after, "touched") | stored(promotion.read, promotion.after, "untouched")
    of_new = pa.array(list(promotion.new), promotion.after).to_pylist()
    assert read(table) == expected | {("touched", "k0"): of_new[0], ("touched", "new"): of_new[1]}


def test_new_columns_are_null_in_rows_of_before() -> None:
    table = new_table()
    table.upsert(rows(pa.int32(), (1, 2, 3, 4), KEYS, "oslo"))
    more = rows(pa.int32(), (5,), ("k0",), "oslo").append_column("new", pa.array(["x"]))
    table.upsert(more.select(["new", "c", "ts", "city", "id"]))

    found = table.scan(meta_fields=False).to_arrow()

    assert found.schema.names == ["id", "city", "ts", "c", "new"]
    assert dict(zip(found["id"].to_pylist(), found["new"].to_pylist(), strict=True)) == {
        "k0": "x", "k1": None, "k2": None, "k3": None,
    }  # fmt: skip
    assert table.scan(where="new IS NULL").to_arrow().num_rows == 3
    with pytest.raises(Invalid, match=r"column 'new' \(string\) is missing"):
        table.upsert(rows(pa.int32(), (1,), ("k0",), "oslo"))
    table.upsert(rows(pa.int32(), (6,), ("k0",), "oslo"), options={"hoodie.write.set.null.for.missing.columns": "true"})
    assert table.scan(where="c = 6").to_arrow()["new"].to_pylist() == [None]


@pytest.mark.parametrize("method", ["insert", "bulk_insert", "upsert"])
def test_every_write_of_rows_may_change_the_schema_and_a_delete_never_does(method: str) -> None:
    table = new_table()
    table.upsert(rows(pa.int32(), (1, 2, 3, 4), KEYS, "oslo"))
    getattr(table, method)(rows(pa.int64(), (2**40,), ("new",), "oslo"))
    assert read(table)["oslo", "new"] == 2**40
    table.delete(rows(pa.string(), ("x",), ("k0",), "oslo"))
    assert table.schema().field("c").type == pa.int64()
    assert ("oslo", "k0") not in read(table)


def test_an_ordering_value_that_became_a_double_is_compared_by_its_digits() -> None:
    table = new_table(ordering="c")
    table.upsert(rows(pa.float32(), (0.1,), ("k0",), "oslo"))
    less = table.upsert(rows(pa.float64(), (0.09999999999,), ("k0",), "oslo"))
    assert (less.updated, table.schema().field("c").type) == (0, pa.float64())
    assert table.upsert(rows(pa.float64(), (0.1,), ("k0",), "oslo")).updated == 1


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("how", ["write", "alter"])
@pytest.mark.parametrize(
    "before, after",
    [(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())],
    ids=["int to long", "int to double", "float to double"],
)
def test_a_late_delete_stays_late_after_the_ordering_column_widened(
    before: pa.DataType, after: pa.DataType, how: str, version: int
) -> None:
    table = new_table(ordering="c", table_type="MERGE_ON_READ", table_version=version)
    table.upsert(rows(before, (10, 10, 10), ("late", "due", "none"), "oslo"))
    table.compact()
    table.delete(rows(before, (5, 10), ("late", "due"), "oslo"))
    table.delete(rows(before, (0,), ("none",), "oslo").select(["id", "city"]))

    if how == "write":
        table.upsert(rows(after, (1,), ("new",), "oslo"))
    else:
        table.alter().change_type("c", after).commit()
        table.upsert(rows(after, (1,), ("new",), "oslo"))

    expected = {("oslo", "late"): 10, ("oslo", "new"): 1}
    assert read(table) == expected
    assert table.log_compact(options={"hoodie.log.compaction.blocks.threshold": 1}).requested is not None
    assert read(table) == expected
    table.compact()
    assert read(table) == expected


def test_a_late_delete_stays_late_after_one_of_two_ordering_columns_widened() -> None:
    table = new_table(ordering=("c", "ts"), table_type="MERGE_ON_READ", table_version=9)
    table.upsert(rows(pa.int32(), (10, 10), ("late", "due"), "oslo"))
    table.compact()
    table.delete(rows(pa.int32(), (5, 11), ("late", "due"), "oslo"))
    table.upsert(rows(pa.int64(), (1,), ("new",), "oslo"))
    assert read(table) == {("oslo", "late"): 10, ("oslo", "new"): 1}
    table.compact()
    assert read(table) == {("oslo", "late"): 10, ("oslo", "new"): 1}


class _Meanwhile:
    """Rows during whose reading something else happens."""

    def __init__(self, table: pa.Table, happens: Any) -> None:
        self._table, self._happens = table, happens

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self._happens()
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_write_follows_a_schema_that_changes_while_its_input_is_read() -> None:
    """The input is checked again, against the schema that the table has when it is held."""
    table = new_table()
    table.upsert(rows(pa.int32(), (1, 2, 3, 4), KEYS, "oslo"))
    other = rows(pa.int64(), (2**40,), ("k1",), "oslo")
    mine = _Meanwhile(rows(pa.int32(), (9,), ("k0",), "oslo"), lambda: table.upsert(other))
    assert table.upsert(mine).updated == 1
    assert read(table)["oslo", "k0"] == 9
    assert read(table)["oslo", "k1"] == 2**40
    narrower = _Meanwhile(rows(pa.string(), ("9",), ("k0",), "oslo"), lambda: table.upsert(other))
    with pytest.raises(Invalid):
        table.upsert(narrower)
    # A write that wants what the table has become by now is none.
    again = rows(pa.int64(), (9,), ("k0",), "oslo")
    assert table.upsert(_Meanwhile(again, lambda: table.upsert(other))).updated == 1


_CHAINS = {
    "whole": (pa.int32(), pa.int64(), pa.float64()),
    "single": (pa.float32(), pa.float64()),
    "text": (pa.string(), pa.binary()),
}
_VALUES = {"whole": st.integers(-100, 100), "single": st.sampled_from([0.1, -2.5, 7.0]), "text": st.sampled_from("abé")}
_steps = st.lists(
    st.tuples(
        st.sampled_from(["oslo", "rome"]),
        st.dictionaries(st.sampled_from(sorted(_CHAINS)), st.integers(0, 2), min_size=1),
        st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(_steps, st.data())
def test_any_sequence_of_schemas_reads_as_a_dict_of_the_widest_types(steps: Sequence[Any], data: st.DataObject) -> None:
    table, model, widest = new_table(), {}, dict[str, int]()
    for turn, (city, columns, keys, is_upsert) in enumerate(steps):
        # Every column that is known, as wide as the step says, and perhaps new ones.
        levels = {name: min(columns.get(name, 0), len(_CHAINS[name]) - 1) for name in {*widest, *columns}}
        made: dict[str, pa.Array] = {"id": pa.array(keys), "city": pa.array([city] * len(keys))}
        made["ts"] = pa.array([turn] * len(keys))
        for name, level in levels.items():
            drawn = data.draw(st.lists(st.none() | _VALUES[name], min_size=len(keys), max_size=len(keys)))
            made[name] = pa.array(drawn, _CHAINS[name][0]).cast(pa.string()).cast(_CHAINS[name][level])
        if is_upsert or any((city, key) in model for key in keys):
            table.upsert(pa.table(made))
        else:
            table.insert(pa.table(made))
        for name, level in levels.items():
            widest[name] = max(level, widest.get(name, 0))
        for at, key in enumerate(keys):
            model[city, key] = {name: made[name][at].as_py() for name in levels}

    found = table.scan(meta_fields=False).to_arrow()
    assert {name: found.schema.field(name).type for name in widest} == {
        name: _CHAINS[name][level] for name, level in widest.items()
    }
    assert {(row["city"], row["id"]): {name: row[name] for name in widest} for row in found.to_pylist()} == {
        key: {name: _read_as(row.get(name), _CHAINS[name][widest[name]], name) for name in widest}
        for key, row in model.items()
    }


def _read_as(value: Any, kind: pa.DataType, name: str) -> Any:
    if value is None:
        return None
    if name == "text":
        text = value.decode() if isinstance(value, bytes) else value
        return text.encode() if pa.types.is_binary(kind) else text
    as_text = pa.array([value], pa.float32()).cast(pa.string())
    return as_text.cast(pa.float64()).cast(kind)[0].as_py()


def test_statistics_of_whole_numbers_that_became_doubles_are_of_the_doubles() -> None:
    statistics = {"hoodie.metadata.index.column.stats.enable": "true"}
    table = new_table(properties=statistics)
    table.insert(rows(pa.int64(), (2**53 + 1, 1, None, 2), KEYS, "oslo"))
    table.insert(rows(pa.float64(), (0.5,), ("new",), "rome"))
    assert table.metadata.validate().differences == ()
    assert [key for _, key in read(table, where="c > 9e15")] == ["k0"]


def test_a_mark_without_a_value_takes_the_table_s_type() -> None:
    table = HudiTable.create("memory://marks", name="t", record_key="id")
    table.upsert(pa.table({"id": ["a", "b"], "_hoodie_is_deleted": [False, None]}))
    table.upsert(pa.table({"id": ["b", "c"], "_hoodie_is_deleted": [None, None]}))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["a", "b", "c"]
    with pytest.raises(Invalid, match="expected bool, found string"):
        table.upsert(pa.table({"id": ["b"], "_hoodie_is_deleted": ["yes"]}))
