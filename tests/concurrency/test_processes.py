"""Processes that write one table with no setting could fail each other, lose a row, or wait without end.

Each process opens the table for each write, as scripts do. No `Conflict` reaches any of them.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.many_writers import (
    Plan,
    check,
    finish,
    kill_at_random,
    longest_s,
    make_table,
    read,
    serve,
    start,
    write,
)

CASES = [
    ("COPY_ON_WRITE", 6, "SIMPLE"),
    ("COPY_ON_WRITE", 8, "BUCKET"),
    ("COPY_ON_WRITE", 9, "SIMPLE"),
    ("MERGE_ON_READ", 6, "SIMPLE"),
    ("MERGE_ON_READ", 8, "SIMPLE"),
    ("MERGE_ON_READ", 9, "BUCKET"),
]
QUICK = CASES[4]


def run_writers(plan: Plan, writers: int) -> None:
    finish([start(write, plan, number) for number in range(writers)])


@pytest.mark.parametrize(
    "table_type,version,index",
    [case if case == QUICK else pytest.param(*case, marks=pytest.mark.long) for case in CASES],
    ids=lambda value: str(value),
)
def test_processes_that_upsert_the_same_keys_all_finish(
    tmp_path: Path, table_type: str, version: int, index: str
) -> None:
    plan = Plan(str(tmp_path / "t"), turns=8)
    make_table(plan.path, table_type=table_type, version=version, index=index)

    run_writers(plan, 4)

    check(plan)


KINDS = ("upsert", "upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "delete_partitions")


def run_mixed(plan: Plan, writers: int, stop: Path) -> None:
    plan.journals.mkdir()
    beside = [start(serve, plan, stop), start(read, plan, stop)]
    try:
        run_writers(plan, writers)
    finally:
        stop.touch()
        finish(beside)


@pytest.mark.parametrize(
    "table_type,version,index",
    [
        pytest.param("COPY_ON_WRITE", 8, "SIMPLE", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", 9, "SIMPLE", marks=pytest.mark.long),
        ("MERGE_ON_READ", 8, "BUCKET"),
    ],
    ids=lambda value: str(value),
)
def test_every_operation_beside_services_and_readers(tmp_path: Path, table_type: str, version: int, index: str) -> None:
    plan = Plan(str(tmp_path / "t"), turns=8, kinds=KINDS)
    make_table(plan.path, table_type=table_type, version=version, index=index)

    run_mixed(plan, 3, tmp_path / "stop")

    check(plan)


NOBODY_WAITS_LONGER_S = 60.0
"""Ten seconds for each turn at the table, and the work itself, on a machine that is busy."""


@pytest.mark.parametrize(
    "table_type,version,index",
    [
        ("COPY_ON_WRITE", 9, "BUCKET"),
        pytest.param("MERGE_ON_READ", 6, "SIMPLE", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", 8, "SIMPLE", marks=pytest.mark.long),
    ],
    ids=lambda value: str(value),
)
def test_writers_that_are_killed_neither_lose_a_row_nor_block_the_others(
    tmp_path: Path, table_type: str, version: int, index: str
) -> None:
    plan = Plan(str(tmp_path / "t"), turns=10, kinds=("upsert", "upsert", "delete"), seed=version)
    make_table(plan.path, table_type=table_type, version=version, index=index)

    kill_at_random(plan, 3, kills=5)

    write(replace(plan, turns=11), 0)  # clears up what the last one left
    check(plan)
    assert longest_s(plan) < NOBODY_WAITS_LONGER_S


@pytest.mark.long
@pytest.mark.parametrize(
    "table_type,version,index",
    [("COPY_ON_WRITE", 9, "SIMPLE"), ("MERGE_ON_READ", 8, "BUCKET"), ("MERGE_ON_READ", 6, "SIMPLE")],
    ids=lambda value: str(value),
)
def test_ten_processes_that_upsert_a_hundred_times_each_all_finish(
    tmp_path: Path, table_type: str, version: int, index: str
) -> None:
    plan = Plan(str(tmp_path / "t"), turns=100)
    make_table(plan.path, table_type=table_type, version=version, index=index)

    run_writers(plan, 10)

    check(plan)
    assert longest_s(plan) < 10 * NOBODY_WAITS_LONGER_S / 2  # nine others may come before, twice a write


@pytest.mark.long
@pytest.mark.parametrize(
    "table_type,version,index",
    [("COPY_ON_WRITE", 8, "SIMPLE"), ("MERGE_ON_READ", 9, "SIMPLE"), ("COPY_ON_WRITE", 6, "BUCKET")],
    ids=lambda value: str(value),
)
def test_four_writers_that_are_killed_for_minutes(tmp_path: Path, table_type: str, version: int, index: str) -> None:
    plan = Plan(str(tmp_path / "t"), turns=80, kinds=("upsert", "upsert", "delete", "insert"), seed=version)
    make_table(plan.path, table_type=table_type, version=version, index=index)

    kill_at_random(plan, 4, kills=60)

    write(replace(plan, turns=81), 0)
    check(plan)
    assert longest_s(plan) < NOBODY_WAITS_LONGER_S
