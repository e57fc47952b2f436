"""A call that takes several texts could take one text letter by letter, or read a generator once to check it and then
find nothing left, and act on partitions, plans or services that nobody named.

Each such call takes any iterable of texts, once, and refuses a bare text and everything else before it acts.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, NotFound, services
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage

ROWS = pa.table({"k": list("abcd"), "p": ["1", "2", "12", "1"], "v": [1, 2, 3, 4]})


def once(*texts: str) -> Iterator[str]:
    yield from texts


@pytest.fixture
def table() -> HudiTable:
    storage = MemoryStorage()
    made = HudiTable.create(
        storage.location.uri, name="t", record_key="k", partition_by="p", table_type="MERGE_ON_READ", storage=storage,
        executor=SerialExecutor(),
    )  # fmt: skip
    made.upsert(ROWS)
    made.upsert(ROWS)
    return made


CALLS: dict[str, Callable[[HudiTable, Any], object]] = {
    "scan": lambda t, names: t.scan(columns=names),
    "incremental": lambda t, names: t.incremental(columns=names),
    "cdc": lambda t, names: t.cdc(columns=names),
    "delete_partitions": lambda t, names: t.delete_partitions(names),
    "partitions_like": lambda t, names: t.partitions_like(names),
    "cluster": lambda t, names: t.cluster(partitions=names),
    "schedule_clustering": lambda t, names: t.schedule_clustering(partitions=names),
    "run_clusterings": lambda t, names: t.run_clusterings(instants=names),
    "compact": lambda t, names: t.compact(instants=names),
    "metadata.list_files": lambda t, names: t.metadata.list_files(names),
    "metadata.list_files of the storage": lambda t, names: t.metadata.list_files(names, listed_by="storage"),
    "metadata.lookup": lambda t, names: t.metadata.lookup(names),
    "metadata.read_records": lambda t, names: t.metadata.read_records(names),
    "services.run": lambda t, names: services.run(t, services=names, once=True),
}
"""Calls of several texts, none of which takes a bare one."""

ONE_OR_SEVERAL: dict[str, Callable[[HudiTable, Any], object]] = {
    "build_index": lambda t, names: t.build_index("column_stats", columns=names),
    "schedule_index": lambda t, names: t.schedule_index("column_stats", columns=names),
    "merge": lambda t, names: t.merge(ROWS, on=names, when_matched_update=True),
    "create": lambda t, names: HudiTable.create("memory://other", name="o", record_key=names),
    "create by ordering": lambda t, names: HudiTable.create("memory://other", name="o", ordering=names),
}
NO_TEXTS: tuple[Any, ...] = (5, b"12", [1], [None], [["1"]], [b"1"])


@pytest.mark.parametrize("call", CALLS)
def test_a_text_is_not_taken_letter_by_letter(table: HudiTable, call: str) -> None:
    before = table.timeline()

    with pytest.raises(Invalid, match=r"='12': expected a sequence of .*, such as \['12'\]"):
        CALLS[call](table, "12")

    assert table.timeline() == before


@pytest.mark.parametrize("call", [*CALLS, *ONE_OR_SEVERAL])
@pytest.mark.parametrize("given", NO_TEXTS, ids=repr)
def test_what_are_no_texts_is_refused(table: HudiTable, call: str, given: Any) -> None:
    before = table.timeline()

    with pytest.raises(Invalid):
        (CALLS | ONE_OR_SEVERAL)[call](table, given)

    assert table.timeline() == before


@pytest.mark.parametrize("given", [5, ["column_stats"], None, b"x"], ids=repr)
def test_an_index_is_dropped_by_one_name(table: HudiTable, given: Any) -> None:
    with pytest.raises(Invalid, match="drop_index"):
        table.drop_index(given)


def test_an_index_has_one_name_and_one_expression(table: HudiTable) -> None:
    wrong: Any = 5
    with pytest.raises(Invalid, match="name=5"):
        table.build_index("secondary_index", columns="v", name=wrong)
    with pytest.raises(Invalid, match="expression=5"):
        table.build_index("expr_index", columns="v", expression=wrong)


@pytest.mark.parametrize("given", [5, b"a"], ids=repr)
def test_keys_that_are_no_sequence_are_refused(table: HudiTable, given: Any) -> None:
    with pytest.raises(Invalid, match="expected a sequence of record keys"):
        table.lookup(given)


def test_a_pattern_names_the_partitions_that_it_says(table: HudiTable) -> None:
    with pytest.raises(Invalid, match=r"patterns='1\*': expected a sequence of patterns"):
        table.partitions_like("1*")

    table.delete_partitions(table.partitions_like(once("1*")))

    assert table.scan(["k"]).to_arrow()["k"].to_pylist() == ["b"]


def test_the_metadata_table_lists_what_a_generator_names(table: HudiTable) -> None:
    metadata: Any = table.metadata

    assert metadata.list_files(once("1", "12"))["partition"].unique().to_pylist() == ["1", "12"]
    assert metadata.list_files(once("2"), listed_by="storage").equals(metadata.list_files(["2"]))
    assert metadata.read_records(once("files")).read_all().equals(metadata.read_records(["files"]).read_all())
    assert metadata.lookup(once("1", "2")) == metadata.lookup(["1", "2"])
    with pytest.raises(NotFound, match="no partition 'x'"):
        metadata.list_files(once("1", "x"))


def test_plans_that_a_generator_names_are_carried_out(table: HudiTable) -> None:
    compaction = str(table.schedule_compaction().requested)
    given: Iterable[str] = once(compaction)
    assert table.compact(instants=given).requested == compaction

    table.bulk_insert(pa.table({"k": ["e"], "p": ["1"], "v": [5]}))
    clustering = str(table.schedule_clustering(partitions=once("1")).requested)
    assert table.run_clusterings(instants=once(clustering)).requested == clustering

    assert table.delete_partitions(once("1")).requested is not None


def test_services_that_a_generator_names_are_run(table: HudiTable) -> None:
    due = {"hoodie.compact.inline.max.delta.commits": "1"}
    report = services.run(table, services=once("compaction"), options=due, once=True)

    (found,) = report.tables.values()
    assert [(one.service.value, one.state.value) for one in found] == [("compaction", "done")]
    with pytest.raises(Invalid, match="found 'vacuum'"):
        services.run(table, services=once("vacuum"), once=True)


def test_a_merge_is_on_the_columns_that_a_generator_names(table: HudiTable) -> None:
    on: Any = once("k", "p")

    assert table.merge(ROWS.slice(0, 1), on=on, when_matched_delete=True).deleted == 1


@pytest.mark.parametrize("given", [pa.array(["1", "12"]), pa.chunked_array([["1"], ["12"]])])
def test_arrow_arrays_of_texts_are_several_texts(table: HudiTable, given: Any) -> None:
    table.delete_partitions(given)
    assert table.scan(columns=["p"]).to_arrow().column("p").to_pylist() == ["2"]
