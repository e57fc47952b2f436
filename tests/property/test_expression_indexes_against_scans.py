"""An index on an expression could rule out a file that holds a row, or say other than the files after some write.

Random writes and services on a table with statistics and with filters of expressions, these so small that most of what
they say is wrong; after each of them random predicates are answered with the indexes and without.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.support.metadata_indexes import index_problems
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids

OFF = {"hoodie.enable.data.skipping": "false"}
ON_SECOND = "from_unixtime(v, 'mm:ss')"
TINY = {"hoodie.index.bloom.num_entries": "2", "hoodie.index.bloom.fpp": "0.3"}
KEYS = [("id", "ascending"), ("city", "ascending")]

cities = st.sampled_from(("oslo", "rome", "york"))
rows = st.builds(Row, st.integers(0, 9).map(lambda n: f"k{n}"), cities, st.integers(0, 4), st.integers(-9, 9))
steps = st.lists(
    st.tuples(st.sampled_from(["upsert", "upsert", "delete", "overwrite", "compact", "clean"]),
              st.lists(rows, min_size=1, max_size=6)),
    min_size=1, max_size=4,
)  # fmt: skip
seconds = st.integers(-9, 9).map(lambda n: f"'{'00' if n >= 0 else '59'}:{n % 60:02}'")
numbers = st.integers(-9, 9).map(str)
conditions = st.one_of(
    st.builds("{} {} {}".format, st.just(ON_SECOND), st.sampled_from(["=", "<", ">=", "<>", "<=>"]), seconds),
    st.builds("{} in ({}, {})".format, st.just(ON_SECOND), seconds, seconds),
    st.builds("{} not between {} and {}".format, st.just(ON_SECOND), seconds, seconds),
    st.builds("v {} {}".format, st.sampled_from(["=", "<", "<=>"]), numbers),
    st.builds("v in ({}, {}, null)".format, numbers, numbers),
    st.sampled_from([f"{ON_SECOND} is null", "city = 'oslo'", f"{ON_SECOND} like '59%'"]),
)
wheres = st.recursive(
    conditions,
    lambda inner: st.one_of(
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=3,
)
BRIEF = settings(
    deadline=None, max_examples=4, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)  # fmt: skip
LONG = settings(BRIEF, max_examples=150)


def check(kind: str, begin: list[Row], steps: list[tuple[str, list[Row]]], asked: list[str], seed: int) -> int:
    """How much the indexes ruled out."""
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(seed), SerialExecutor())
    properties = {"hoodie.metadata.compact.max.delta.commits": "3", "hoodie.clean.commits.retained": "1"}
    handles.create(table_type=kind, table_version=8 + seed % 2, properties=properties)
    table, without = handles.open(), handles.open(OFF)
    table.upsert(arrow(begin))
    table.build_index("expr_index", name="at", expression=ON_SECOND)
    table.build_index("bloom_filters", columns="v", expression="v", options=TINY)
    pruned = 0
    for step, batch in [("nothing", []), *steps]:
        act(table, kind, step, batch)
        assert index_problems(handles.storage) == []
        for where in asked:
            scan = table.scan(where=where)
            expected = without.scan(where=where).to_arrow().sort_by(KEYS)
            assert scan.to_arrow().sort_by(KEYS).equals(expected), where
            pruned += sum(one.files + one.partitions for one in scan._plan.explanation.indexes)
    return pruned


def act(table: Any, kind: str, step: str, batch: list[Row]) -> None:
    match step:
        case "upsert":
            table.upsert(arrow(batch))
        case "delete":
            table.delete(arrow(batch, ["id", "city"]))
        case "overwrite":
            table.insert_overwrite(arrow({row.id: row for row in batch}.values()))
        case "compact" if kind == "MERGE_ON_READ":
            table.compact()
        case "clean":
            table.clean()


kinds = st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"])
begins = st.lists(rows, min_size=1, max_size=6)
asks = st.lists(wheres, min_size=1, max_size=3)


@BRIEF
@given(kind=kinds, begin=begins, steps=steps, asked=asks, seed=st.integers(0, 99))
@example(
    kind="MERGE_ON_READ", begin=[Row("a", "oslo", 1, 1), Row("b", "rome", 1, -5)],
    steps=[("upsert", [Row("a", "oslo", 2, 7)]), ("compact", []), ("delete", [Row("b", "rome", 9, 9)])],
    asked=[f"{ON_SECOND} = '00:07'", "v = 7", f"{ON_SECOND} > '58' or v = 1"], seed=0,
)  # fmt: skip
def test_what_is_pruned_holds_no_row(
    kind: str, begin: list[Row], steps: list[tuple[str, list[Row]]], asked: list[str], seed: int
) -> None:
    check(kind, begin, steps, asked, seed)


@pytest.mark.long
@LONG
@given(kind=kinds, begin=begins, steps=steps, asked=asks, seed=st.integers(0, 99))
def test_what_is_pruned_holds_no_row_in_many_runs(
    kind: str, begin: list[Row], steps: list[tuple[str, list[Row]]], asked: list[str], seed: int
) -> None:
    check(kind, begin, steps, asked, seed)


def test_files_and_partitions_are_spared() -> None:
    begin = [Row("a", "oslo", 1, 1), Row("b", "rome", 1, -5), Row("c", "york", 1, 7)]
    steps = [("upsert", [Row("a", "oslo", 2, 7)])]
    assert check("MERGE_ON_READ", begin, steps, [f"{ON_SECOND} < '50'"], 1) == 2
