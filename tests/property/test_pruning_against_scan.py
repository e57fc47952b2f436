"""An index could rule out a file that holds a row: a query by key or value would lose it, and nobody would notice.

Random upserts, deletes and moves between partitions, with compactions done or left pending, on tables with every index.
Then random predicates: by each set of indexes the answer is that of the scan that asks none.
"""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.property.test_indexes_against_dict import BRIEF as SHORT
from tests.property.test_indexes_against_dict import CITIES, LONG
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids
from tests.support.pruning import plan_by, rows_by_file, rows_kept

BRIEF = hypothesis_settings(SHORT, max_examples=2)
KEYS = [f"k{n:02}" for n in range(12)]
NOTES = ("a", "b$", "", "\\", None)

rows = st.builds(Row, st.sampled_from(KEYS), st.sampled_from(CITIES), st.integers(0, 4), st.integers(-2, 3),
                 st.sampled_from(NOTES))  # fmt: skip
steps = st.lists(
    st.tuples(
        st.sampled_from(["upsert", "upsert", "delete", "compact", "plan"]), st.lists(rows, min_size=1, max_size=9)
    ),
    min_size=2,
    max_size=5,
)

texts = st.sampled_from([*KEYS, "none"]).map(repr)
numbers = st.integers(-3, 4).map(str)
notes = st.sampled_from(["'a'", "'b$'", "''", "'\\\\\\\\'", "null"])


def listed(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, min_size=1, max_size=3).map(lambda of: f"({', '.join(of)})")


def compared(column: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["=", "=", "=", "<=>", "<", ">=", "!="])
    return st.one_of(
        st.builds(lambda op, value: f"{column} {op} {value}", operator, values),
        st.builds(lambda op, value: f"{value} {op} {column}", operator, values),
        listed(values).map(lambda of: f"{column} in {of}"),
        st.just(f"{column} is null"),
    )


atoms = st.one_of(
    compared("id", texts), compared("_hoodie_record_key", texts), compared("v", numbers), compared("note", notes),
    compared("city", st.sampled_from(CITIES).map(repr)), compared("ts", numbers), st.just("id like 'k0%'"),
)  # fmt: skip
wheres = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(lambda left, op, right: f"({left}) {op} ({right})", inner, st.sampled_from(["and", "or"]), inner),
        inner.map(lambda one: f"not ({one})"),
    ),
    max_leaves=4,
)

SECONDARY = ("secondary_index_v", "secondary_index_note")
SETS: dict[str, tuple[str, ...]] = {
    "record index": ("files", "record_index"),
    "secondary": ("files", "record_index", *SECONDARY),
    "filters": ("files", "bloom_filters"),
    "statistics": ("files", "column_stats", "partition_stats"),
    "all": ("files", "record_index", *SECONDARY, "bloom_filters", "column_stats", "partition_stats"),
}


def new_table(table_type: str, version: int, seed: int, *, is_partitioned: bool) -> HudiTable:
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(seed), SerialExecutor())
    kind = "hoodie.metadata.record.level.index" if is_partitioned else "hoodie.metadata.global.record.level.index"
    table = handles.create(
        table_version=version, table_type=table_type,
        properties={
            "hoodie.index.type": "SIMPLE" if is_partitioned else "GLOBAL_SIMPLE",
            "hoodie.simple.index.update.partition.path": "true",
            f"{kind}.enable": "true", f"{kind}.min.filegroup.count": "2",
            "hoodie.metadata.index.bloom.filter.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.parquet.small.file.limit": "0",
        },
    )  # fmt: skip
    table.upsert(arrow([Row("k00", "oslo", 0, 0, "a")]))
    if not is_partitioned:
        for column in ("v", "note"):
            table.build_index("secondary_index", columns=column, name=column)
    return table


def run_step(table: HudiTable, step: str, batch: Sequence[Row]) -> None:
    match step:
        case "upsert":
            table.upsert(arrow(batch))
        case "delete":
            table.delete(arrow(batch, ["id", "city"]))
        case "compact" if table.table_type == "MERGE_ON_READ":
            table.compact()
        case "plan" if table.table_type == "MERGE_ON_READ":
            table.schedule_compaction()


def check(table: HudiTable, predicates: Sequence[str], *, sets: Sequence[str]) -> set[str]:
    """Every answer, of each predicate by its sets of indexes. Gives the indexes that ruled something out."""
    snapshot, used = table._access.snapshot(), set()
    schema = snapshot.schema_with_meta
    for query in ("snapshot", "read_optimized")[: 1 + snapshot.config.is_merge_on_read]:
        stored = rows_by_file(table, snapshot, query=query)
        for at, where in enumerate(predicates):
            expected = rows_kept(stored.values(), where, schema)
            for name in (sets[at % len(sets)], sets[(at + 1) % len(sets)]):
                pruned = plan_by(table, snapshot, where, SETS[name], query=query)
                by = pruned.explanation.indexes
                assert {one.index for one in by} <= {*SETS[name]}, name
                found = rows_kept((stored[file.path] for file in pruned.files), where, schema)
                assert found == expected, (name, query, where, by)
                used |= {one.index for one in by if one.files or one.partitions}
    return used


@pytest.mark.parametrize("is_partitioned", [False, True], ids=["global", "by partition"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@BRIEF
@given(steps=steps, predicates=st.lists(wheres, min_size=3, max_size=6), seed=st.integers(0, 99))
@example(
    steps=[("upsert", [Row("k01", "oslo", 1, 1, "a"), Row("k02", "rome", 1, 2, "b$")]), ("plan", []),
           ("upsert", [Row("k01", "rome", 2, 2, None), Row("k02", "rome", 2, 3, "b$"), Row("k03", "york", 1, 1, "a")])],
    predicates=["id = 'k01'", "v = 1", "note = 'b$' and v > 0", "id in ('k02', 'none') or id = 'k03'", "note <=> null",
                "id = 'none'"],
    seed=2,
)  # fmt: skip
def test_an_index_rules_out_no_row_that_a_scan_finds(
    table_type: str, is_partitioned: bool, steps: list[tuple[str, list[Row]]], predicates: list[str], seed: int
) -> None:
    version = 9 if is_partitioned else 8 + seed % 2
    table = new_table(table_type, version, seed, is_partitioned=is_partitioned)
    for step, batch in steps:
        run_step(table, step, batch)
    check(table, predicates, sets=[*SETS][seed % len(SETS) :] + [*SETS][: seed % len(SETS)])


@pytest.mark.long
@pytest.mark.parametrize("is_partitioned", [False, True], ids=["global", "by partition"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@LONG
@given(steps=steps, predicates=st.lists(wheres, min_size=3, max_size=6), seed=st.integers(0, 99))
def test_an_index_rules_out_no_row_for_long(table_type: str, is_partitioned: bool, **drawn: object) -> None:
    inner = test_an_index_rules_out_no_row_that_a_scan_finds.hypothesis.inner_test
    inner(table_type=table_type, is_partitioned=is_partitioned, **drawn)
