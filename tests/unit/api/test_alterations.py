"""A change of columns could reach what the table is keyed, placed, ordered or indexed by; get lost between two writers;
or be read by a service that was planned before it. Small tables of each version are altered here, in memory."""

import json
import random
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid, Unsupported
from pyhudi.storage.memory import MemoryStorage
from tests.concurrency.test_second_writer import watched
from tests.support.model import Handles, StepClock, seeded_uuids, without_metadata_table
from tests.support.versions import EVERY_VERSION

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
ROWS = pa.table({
    "id": ["a", "b", "c"], "city": ["x", "x", "y"], "ts": [1, 1, 1], "name": ["na", "nb", "nc"],
    "n": pa.array([1, 2, 3], pa.int32()),
})  # fmt: skip


def new_table(version: int = 9, kind: str = KINDS[0], schema: pa.Schema | None = None, **properties: str) -> Handles:
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(version), SerialExecutor())
    handles.create(table_version=version, table_type=kind, schema=schema, properties=properties)
    return handles


def filled(version: int = 9, kind: str = KINDS[0], **properties: str) -> Handles:
    handles = new_table(version, kind, **properties)
    handles.open().insert(ROWS)
    return handles


def rows(table: HudiTable, **scan: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.scan(meta_fields=False, **scan).to_arrow().sort_by("id").to_pylist()
    return found


def history(handles: Handles) -> list[dict[str, object]]:
    """The schemas of the newest history."""
    files = [file.path for file in handles.storage.list(".hoodie/.schema") if file.path.endswith(".schemacommit")]
    schemas: list[dict[str, object]] = json.loads(handles.storage.get(max(files)))["schemas"]
    return schemas


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", EVERY_VERSION)
def test_one_commit_carries_all_changes_and_old_rows_follow(version: int, kind: str) -> None:
    handles = filled(version, kind)
    table = handles.open()
    before = table.timeline()[-1].requested

    result = table.alter().rename("name", "label").drop("n").add("n", "string", after="id").commit()

    assert result.changes == (
        "'name' is now called 'label', no column 'n', new column 'n' (string), which stands behind 'id'"
    )
    assert table.timeline()[-1].requested == result.requested
    assert table.timeline()[-1].action == ("commit" if kind == KINDS[0] else "deltacommit")
    assert rows(table)[0] == {"id": "a", "n": None, "city": "x", "ts": 1, "label": "na"}
    assert rows(table, as_of=before)[0] == {"id": "a", "city": "x", "ts": 1, "name": "na", "n": 1}
    assert [one["version_id"] for one in history(handles)] == [int(result.requested or 0), 0]
    table.upsert(pa.table({"id": ["a"], "n": ["new"], "city": ["x"], "ts": [2], "label": ["later"]}))
    assert rows(table)[0] == {"id": "a", "n": "new", "city": "x", "ts": 2, "label": "later"}
    assert rows(table)[1]["n"] is None
    assert table.metadata.validate().differences == ()


def test_the_result_tells_each_change() -> None:
    handles = filled()
    table = handles.open()
    change = table.alter()
    assert repr(change) == "TableAlteration('t': no changes yet; commit() carries this out)"

    change.rename("name", "label").move("label", first=True).comment("n", "how many").make_nullable("n").comment(
        "ts", None
    )
    change.add("z", "int64").move("z", before="n").change_type("n", "int64").drop("label")

    told = (
        "'name' is now called 'label', 'label' stands first, 'n' has the comment 'how many', 'n' may be null, "
        "'ts' has no comment, new column 'z' (int64), 'z' stands before 'n', 'n' is int64, no column 'label'"
    )
    assert repr(change) == f"TableAlteration('t': {told}; commit() carries this out)"
    result = change.commit()
    assert result.changes == told
    assert repr(change) == f"TableAlteration('t': {told}; committed as '{result.requested}')"


IN_DOUBT = {
    "price": (pa.array([1.005, -2.5, None]), pa.decimal128(10, 2), [Decimal("1.01"), Decimal("-2.50"), None]),
    "rate": (pa.array([0.1, 1e10, 1e-30], pa.float32()), pa.decimal128(20, 3), ["0.100", "10000000000.000", "0.000"]),
    "number": (pa.array(["1.5", "-2", "3E2"]), pa.decimal128(10, 2), ["1.50", "-2.00", "300.00"]),
    "day": (pa.array(["2021-01-05", "1999-12-31", None]), pa.date32(), [date(2021, 1, 5), date(1999, 12, 31), None]),
    "amount": (pa.array([Decimal("1.10"), Decimal("-3.00"), None]), pa.string(), ["1.10", "-3.00", None]),
}
"""Stored values, the type that they are to get, and what they become."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_type_that_may_not_fit_is_taken_where_each_stored_value_does(
    version: int, kind: str, is_renamed: bool
) -> None:
    handles = new_table(version, kind)
    stored = ROWS
    for name, (values, _, _) in IN_DOUBT.items():
        stored = stored.append_column(name, values)
    handles.open().insert(stored)
    handles.open().upsert(stored.slice(1, 1))  # a log, on merge-on-read
    if is_renamed:
        handles.open().alter().rename("name", "label").commit()

    change = handles.open().alter()
    for name, (_, wanted, _) in IN_DOUBT.items():
        change = change.change_type(name, wanted)
    change.commit()

    found = handles.open().scan().to_arrow().sort_by("id")
    for name, (_, wanted, expected) in IN_DOUBT.items():
        assert found.schema.field(name).type == wanted
        assert found.column(name).to_pylist() == pa.array(expected).cast(wanted).to_pylist(), name
    assert [row["id"] for row in rows(handles.open(), where="number > 2 and day is null")] == ["c"]


@pytest.mark.parametrize("is_at_once", [True, False])
@pytest.mark.parametrize("name, wanted", [("n", pa.date32()), ("day", pa.decimal128(10, 2))])
def test_files_are_looked_at_by_the_type_that_they_were_written_with(
    name: str, wanted: pa.DataType, is_at_once: bool
) -> None:
    handles = new_table()
    handles.open().insert(ROWS.append_column("day", pa.array([date(2021, 1, 5)] * 3)))
    change = handles.open().alter().change_type(name, "string")
    if not is_at_once:
        change.commit()
        change = handles.open().alter()

    with pytest.raises(Invalid, match="a stored value does not fit the new type"):
        change.change_type(name, wanted).commit()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name, wanted, message",
    [
        ("name", pa.date32(), "expected column 'name' readable as date32"),
        ("name", pa.decimal128(10, 2), "does not fit decimal(10, 2)"),
        ("price", pa.decimal128(2, 2), "100.0 does not fit decimal"),
        ("home.zip", pa.date32(), "expected column 'home.zip' readable as date32"),
    ],
)
def test_a_stored_value_that_does_not_fit_a_new_type_is_told(
    kind: str, name: str, wanted: pa.DataType, message: str
) -> None:
    handles = new_table(9, kind)
    home = pa.array([{"zip": "2021-01-05"}, None, {"zip": "soon"}])
    stored = ROWS.append_column("price", pa.array([0.5, 0.25, 100.0])).append_column("home", home)
    handles.open().insert(stored.set_column(3, "name", pa.array(["2021-01-05"] * 3)))
    handles.open().upsert(stored.slice(1, 2))
    before = [one.requested for one in handles.open().timeline()]

    with pytest.raises(Invalid, match="a stored value does not fit the new type") as raised:
        handles.open().alter().change_type(name, wanted).commit()

    assert message in str(raised.value)
    assert [one.requested for one in handles.open().timeline()] == before


def test_a_table_that_was_made_with_a_schema_is_altered_before_its_first_write() -> None:
    handles = new_table(schema=ROWS.schema)
    table = handles.open()
    table.alter().rename("name", "label").commit()
    table.insert(ROWS.rename_columns(["id", "city", "ts", "label", "n"]))
    assert rows(table)[0]["label"] == "na"
    with pytest.raises(Invalid, match="has no columns yet"):
        new_table().open().alter().drop("n").commit()


def test_nothing_is_written_where_nothing_changes() -> None:
    handles = filled()
    before = {file.path for file in handles.storage.list(".hoodie")}
    result = handles.open().alter().rename("name", "x").rename("x", "name").change_type("n", "int32").commit()
    assert (result.requested, result.completed, result.changes) == (None, None, "")
    assert {file.path for file in handles.storage.list(".hoodie")} == before
    with pytest.raises(Invalid, match="expected changes, found none"):
        handles.open().alter().commit()


Alter = Callable[[HudiTable], object]
REFUSED: dict[str, tuple[Alter, str]] = {
    "key": (lambda t: t.alter().rename("id", "key"), "cannot be renamed: it is a record key column"),
    "partition": (lambda t: t.alter().drop("city"), "cannot be dropped: it is a partition column"),
    "ordering": (lambda t: t.alter().change_type("ts", "string"), "cannot be made string: it is an ordering column"),
    "mark": (lambda t: t.alter().drop("_hoodie_is_deleted"), "it marks rows as deleted"),
    "index": (lambda t: t.alter().rename("name", "x"), r"'secondary_index_by_name' is made of it.*drop_index\("),
    "second": (lambda t: t.alter().add("new", "int32").drop("new").drop("city"), "it is a partition column"),
}


@pytest.fixture(scope="module")
def pinned() -> Handles:
    properties = {"hoodie.metadata.record.index.enable": "true"}
    handles = new_table(9, KINDS[0], None, **properties)
    table = handles.open()
    table.insert(ROWS.append_column("_hoodie_is_deleted", pa.array([False] * 3)))
    table.build_index("secondary_index", columns=["name"], name="by_name")
    return handles


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_table_goes_by_is_refused_by_name(pinned: Handles, name: str) -> None:
    change, message = REFUSED[name]
    before = {path: pinned.storage.get(path) for path in without_metadata_table(pinned.storage)}
    with pytest.raises(Invalid, match=message):
        change(pinned.open()).commit()  # type: ignore[attr-defined]
    assert {path: pinned.storage.get(path) for path in without_metadata_table(pinned.storage)} == before


def test_an_ordering_column_becomes_a_type_that_keeps_its_order() -> None:
    handles = new_table()
    table = handles.open()
    table.insert(ROWS.set_column(2, "ts", pa.array([1, 2, 3], pa.int32())))
    table.alter().change_type("ts", "int64").move("id", after="ts").comment("city", "where").commit()
    assert table.schema().field("ts").type == pa.int64()


def test_columns_without_a_place_in_a_history_are_refused_before_anything_is_written() -> None:
    handles = filled()
    table = handles.open()
    naive = pa.table({"id": ["a"], "city": ["x"], "ts": [2], "name": ["n"], "n": pa.array([1], pa.int32()),
                      "at": pa.array([1], pa.timestamp("us"))})  # fmt: skip
    with pytest.raises(Unsupported, match="column 'at'"):
        table.alter().add("at", pa.timestamp("us")).commit()
    table.alter().add("more", "int32").commit()
    before = table.timeline()
    with pytest.raises(Unsupported, match="column 'at'"):
        table.upsert(naive, options={"hoodie.write.set.null.for.missing.columns": "true"})
    assert table.timeline() == before


def test_the_later_of_two_alterations_ends_in_a_conflict_that_says_what_differs() -> None:
    handles = filled()
    mine, yours = handles.open().alter().drop("n"), handles.open().alter().rename("name", "label")
    yours.commit()
    with pytest.raises(Conflict, match=r"changed the table's columns meanwhile \(new column 'label' \(string\), no co"):
        mine.commit()
    assert handles.open().schema().names == ["id", "city", "ts", "label", "n"]


def test_an_alteration_that_was_committed_says_so_when_it_is_committed_again() -> None:
    """It said that another writer had changed the columns."""
    table = filled().open()
    alteration = table.alter().rename("name", "label")
    done = alteration.commit()
    before = table.timeline()

    for again in (alteration, alteration.drop("n")):
        with pytest.raises(
            Invalid, match=rf"this alteration was committed already, as '{done.requested}'; .* alter\(\)"
        ):
            again.commit()
    assert table.timeline() == before
    assert table.alter().drop("n").commit().requested


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_runs_while_columns_change_says_what_changed(kind: str) -> None:
    handles = filled(8, kind)
    done: list[str] = []

    def alter(what: str) -> None:
        if not done and (".parquet" in what or ".log." in what) and "metadata" not in what:
            done.append(what)
            handles.open().alter().rename("name", "label").commit()

    storage = watched(handles.storage, alter)
    table = HudiTable.open("", storage=storage, clock=handles.clock, random=handles.random, executor=SerialExecutor())
    with pytest.raises(Conflict, match=r"changed the table's schema meanwhile \(new column 'label'"):
        table.upsert(ROWS)
    assert done
    assert rows(handles.open())[0] == {"id": "a", "city": "x", "ts": 1, "label": "na", "n": 1}
    assert not [i for i in handles.open().timeline() if not i.is_completed]


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_a_service_that_was_planned_before_writes_its_files_by_the_columns_of_its_plan(service: str) -> None:
    handles = filled(8, KINDS[1])
    table = handles.open({"hoodie.clean.automatic": "false"})
    table.upsert(ROWS.set_column(2, "ts", pa.array([2, 2, 2])))
    if service == "compaction":
        planned = table.schedule_compaction().requested
    else:
        planned = table.schedule_clustering(
            options={"hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30),
                     "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}).requested  # fmt: skip
    assert planned
    altered = table.alter().rename("name", "label").drop("n").add("n", "string").commit()
    expected = rows(table)
    if service == "compaction":
        table.upsert(pa.table({"id": ["c"], "city": ["y"], "ts": [3], "label": ["later"], "n": ["new"]}))
        expected = rows(table)
        assert expected[2] == {"id": "c", "city": "y", "ts": 3, "label": "later", "n": "new"}
        assert table.compact().completed
    else:
        assert table.cluster().requested == planned
    assert rows(table) == expected
    assert rows(table, as_of=altered.requested or "")[0]["label"] == "na"
    assert [one["version_id"] for one in history(handles)] == [int(altered.requested or 0), 0]


DROPS = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_drops_what_its_input_lacks_if_an_option_says_so_and_nothing_comes_back(kind: str) -> None:
    handles = filled(8, kind)
    table = handles.open()
    less = ROWS.slice(0, 1).drop(["n"]).set_column(2, "ts", pa.array([2]))
    table.upsert(less, options=DROPS)
    assert table.schema().names == ["id", "city", "ts", "name"]
    assert rows(table)[2] == {"id": "c", "city": "y", "ts": 1, "name": "nc"}
    table.upsert(less.append_column("n", pa.array([7], pa.int32())))
    assert [row["n"] for row in rows(table)] == [7, None, None]
    with pytest.raises(Invalid, match=r"column 'city' .* is missing"):
        table.upsert(less.drop(["city"]), options=DROPS)


def test_a_write_does_not_drop_what_an_index_tells_of(pinned: Handles) -> None:
    with pytest.raises(Invalid, match="column 'name': cannot be dropped: the index 'secondary_index_by_name'"):
        pinned.open().upsert(pinned.open().scan(meta_fields=False).to_arrow().drop(["name"]), options=DROPS)
    table = filled(9, KINDS[0], **{"hoodie.metadata.index.column.stats.enable": "true"}).open()
    with pytest.raises(Invalid, match=r"column 'n' is missing.*column_stats tells of it.*alter\(\).drop\('n'\)"):
        table.upsert(ROWS.drop(["n"]), options=DROPS)


def test_statistics_that_would_mislead_go_and_are_made_anew_for_the_columns_of_today() -> None:
    handles = filled(9, KINDS[0], **{"hoodie.metadata.index.column.stats.enable": "true"})
    table = handles.open()
    assert table.alter().add("more", "int64").commit().dropped_indexes == ()
    table.upsert(ROWS.append_column("more", pa.array([1, 2, 3])))
    assert table.alter().drop("more").commit().dropped_indexes == ("column_stats",)
    table.alter().add("more", "int64").commit()
    table.upsert(ROWS.slice(2).append_column("more", pa.array([9])))
    assert table.metadata.validate().checked == ("column_stats", "files")
    assert table.metadata.validate().differences == ()
    assert [row["id"] for row in rows(table, where="more is null")] == ["a", "b"]


def test_a_restore_takes_the_columns_back_and_the_next_history_begins_anew() -> None:
    handles = filled(8)
    table = handles.open()
    first = table.timeline()[-1].requested
    table.savepoint()
    table.alter().rename("name", "label").commit()
    table.upsert(ROWS.rename_columns(["id", "city", "ts", "label", "n"]))
    table.restore(first)
    assert table.schema().names == ROWS.column_names
    assert rows(table) == ROWS.to_pylist()
    result = table.alter().rename("name", "title").commit()
    assert [one["version_id"] for one in history(handles)] == [int(result.requested or 0), 0]
    assert len(list(handles.storage.list(".hoodie/.schema"))) == 3
    assert rows(table)[0]["title"] == "na"


def test_a_history_that_was_taken_back_is_not_read_again() -> None:
    handles = filled(8)
    table = handles.open()
    kept = table.alter().rename("name", "label").commit().requested or ""
    table.savepoint()
    table.alter().rename("label", "other").drop("n").commit()
    table.restore(kept)
    table.upsert(ROWS.slice(2).rename_columns(["id", "city", "ts", "label", "n"]))
    assert [one["version_id"] for one in history(handles)] == [int(kept), 0]
    assert [row["label"] for row in rows(table)] == ["na", "nb", "nc"]


def test_the_history_outlives_the_commits_that_made_it() -> None:
    keep = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    handles = filled(8, KINDS[0], **keep)
    table = handles.open()
    altered = table.alter().rename("name", "label").drop("n").commit()
    later = pa.table({"id": ["c"], "city": ["y"], "ts": [1], "label": ["l"]})
    for ts in range(2, 14):
        table.upsert(later.set_column(2, "ts", pa.array([ts])))
    assert (altered.requested or "") not in {instant.requested for instant in table.timeline()}
    assert [one["version_id"] for one in history(handles)] == [int(altered.requested or 0), 0]
    assert len(list(handles.storage.list(".hoodie/.schema"))) <= 3 * 6
    assert rows(table)[0] == {"id": "a", "city": "x", "ts": 1, "label": "na"}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_random_changes_and_writes_agree_with_a_model(kind: str, seed: int) -> None:
    """The model: a row is a dict by column number, whatever the columns are called."""
    draw = random.Random(seed)
    handles = filled(draw.choice([6, 8, 9]), kind)
    table = handles.open()
    model = {str(row["id"]): dict(row) for row in ROWS.to_pylist()}
    free = ["name", "n"]
    for step in range(12):
        what = draw.choice(["rename", "drop", "add", "upsert", "upsert", "compact", "cluster"])
        own = [name for name in table.schema().names if name not in ("id", "city", "ts")]
        if what == "rename" and own:
            old, new = draw.choice(own), draw.choice([*free, f"c{step}"])
            if new not in own:
                table.alter().rename(old, new).commit()
                model = {key: {new if name == old else name: row[name] for name in row} for key, row in model.items()}
        elif what == "drop" and own:
            old = draw.choice(own)
            table.alter().drop(old).commit()
            model = {key: {name: row[name] for name in row if name != old} for key, row in model.items()}
        elif what == "add":
            new = draw.choice([*free, f"c{step}"])
            if new not in own:
                table.alter().add(new, "string").commit()
                model = {key: {**row, new: None} for key, row in model.items()}
        elif what == "upsert":
            key, schema = draw.choice("abcd"), table.schema()
            city = str(model.get(key, {"city": "y"})["city"])
            row = {"id": key, "city": city, "ts": step + 2}
            row |= {name: step if schema.field(name).type == pa.int32() else f"v{step}" for name in own}
            table.upsert(pa.Table.from_pylist([row], schema))
            model[key] = row
        elif what == "compact" and kind == KINDS[1]:
            table.compact()
        elif what == "cluster":
            table.cluster(options={"hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30)})
        assert rows(table) == [{name: model[key][name] for name in table.schema().names} for key in sorted(model)], (
            seed, step, what
        )  # fmt: skip


def test_statistics_tell_nothing_of_rows_that_a_restore_took_back() -> None:
    """Version 6 voids the blocks of a write that is taken back, and keeps their logs."""
    handles = filled(6, KINDS[1], **{"hoodie.metadata.enable": "false"})
    table = handles.open()
    kept = table.savepoint()
    table.alter().drop("n").add("n", "string").commit()
    table.upsert(pa.table({"id": ["a"], "city": ["x"], "ts": [2], "name": ["x"], "n": ["no number"]}))
    table.restore(kept.requested)
    assert [path for path in without_metadata_table(handles.storage) if ".log." in path]

    options = {"hoodie.metadata.enable": "true"}
    handles.open(options).build_index("column_stats")
    assert rows(handles.open(options), where="n = 1")[0]["id"] == "a"
    assert handles.open(options).metadata.validate().differences == ()


def test_arguments_that_are_none_are_refused_at_once() -> None:
    alteration = filled().open().alter()
    with pytest.raises(Invalid, match="expected a text as its comment"):
        alteration.comment("n", 5)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match=r"such as pyarrow.decimal128\(10, 2\)"):
        alteration.add("x", "varchar")
    for other in (Decimal, None, pa.field("y", pa.string()), "decimal(39, 2)"):
        with pytest.raises(Invalid, match="as in SQL: bigint, date"):
            alteration.change_type("n", other)
    with pytest.raises(Invalid, match="expected the name of a column"):
        alteration.move("n", after=3)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="first: expected True or False, found 'x'"):
        alteration.move("n", first="x")  # type: ignore[arg-type]


def test_types_have_the_names_of_sql_too() -> None:
    handles = filled()
    handles.open().alter().change_type("n", "BIGINT").add("day", "date").add("amount", "decimal(10, 2)").commit()
    found = handles.open().schema()
    assert [found.field(name).type for name in ("n", "day", "amount")] == [
        pa.int64(), pa.date32(), pa.decimal128(10, 2)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["op", "_hoodie_is_deleted"])
def test_a_column_does_not_become_one_that_marks_deletes(name: str) -> None:
    marks = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    handles = new_table(9, KINDS[0], None, **marks)
    handles.open().insert(ROWS)
    with pytest.raises(Invalid, match=f"cannot be renamed to '{name}': it would mark rows as deleted"):
        handles.open().alter().rename("name", name).commit()


def test_whole_numbers_that_were_text_become_narrow_decimals() -> None:
    handles = filled()
    handles.open().alter().change_type("n", "string").commit()
    handles.open().alter().change_type("n", "decimal(3, 1)").commit()
    assert [row["n"] for row in rows(handles.open())] == [Decimal("1.0"), Decimal("2.0"), Decimal("3.0")]
    handles.open().alter().change_type("n", "string").commit()
    with pytest.raises(Invalid, match=r"'1' does not fit decimal\(2, 2\)"):
        handles.open().alter().change_type("n", "decimal(2, 2)").commit()
