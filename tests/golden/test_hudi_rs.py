"""The second reader could be trusted where it does not deserve it, or be passed over where it does.

hudi-rs reads every copy-on-write table here that Apache Hudi wrote, by every query that has an answer. Where it fails
or answers otherwise, the difference is pinned to the last value, with the reason: one that is gone fails its test, and
is to be taken off the list.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.compare import assert_same_rows
from tests.support.golden_tables import (
    GoldenAnswer,
    GoldenTable,
    GoldenTables,
    golden_answers,
    golden_names,
    has_metadata_table,
)
from tests.support.hudi_rs import (
    VERSION_5,
    HudiRsError,
    kinds_of_partitions,
    read_hudi_rs,
    read_hudi_rs_by_storage,
)

ANSWERS = tuple(answer for name in golden_names() if name.startswith("cow_") for answer in golden_answers(name))

Check: TypeAlias = Callable[[pa.Table, pa.Table], None]
"""Passes when the answer of hudi-rs differs from Apache Hudi's as it is known to."""


def shows(column: str, as_hudi: Callable[[pa.Table], pa.ChunkedArray]) -> Check:
    """One column differs; `as_hudi` makes of the answer of hudi-rs what Apache Hudi shows there."""

    def check(actual: pa.Table, expected: pa.Table) -> None:
        at = actual.schema.get_field_index(column)
        assert_same_rows(actual.set_column(at, column, as_hudi(actual)), expected)

    return check


def has_types_of_now(actual: pa.Table, expected: pa.Table) -> None:
    """Columns that were widened since are wide in the past, too; the values are those of then."""
    then, now = {"cnt": pa.int32(), "score": pa.float32()}, {"cnt": pa.int64(), "score": pa.float64()}
    assert {name: actual.schema.field(name).type for name in now} == now
    columns = {name: actual[name].cast(then.get(name, actual[name].type)) for name in actual.column_names}
    assert_same_rows(pa.table(columns), expected)


def last_level(table: pa.Table) -> pa.ChunkedArray:
    return pc.replace_substring_regex(table["_hoodie_partition_path"], "^.*/", "")


@dataclass(frozen=True, slots=True)
class Pin:
    """`answers`: pattern of the answers that it is about. `found`: the error, or a check of what differs."""

    answers: str
    reason: str
    found: HudiRsError | Check


PINS = (
    Pin("cow_*_v5_*", "versions 6, 8 and 9 are supported", VERSION_5),
    Pin(
        "cow_customgen_v9_*",
        "the kinds of a custom key generator's columns are taken for parts of their names",
        kinds_of_partitions(r"part\:simple"),
    ),
    Pin(
        "cow_customgen_v6_*-snapshot",
        "0.15.0 shows a text column that paths are made of by the time-based rule as its path; hudi-rs as it is stored",
        shows("day", last_level),
    ),
    Pin(
        "cow_tsgen_v6_*-snapshot",
        "0.15.0 shows the column of a time-based key generator as its path; hudi-rs as it is stored",
        shows("epoch_ms", lambda table: table["_hoodie_partition_path"]),
    ),
    Pin(
        "cow_tsgen_v9_*-snapshot",
        "1.x shows the column of a time-based key generator as text; hudi-rs as it is stored",
        shows("epoch_ms", lambda table: table["epoch_ms"].cast(pa.string())),
    ),
    Pin(
        "cow_schema_promote_v9_*-time_travel_2026112111370[46]*",
        "time travel to before columns were widened shows the schema of then; hudi-rs that of now",
        has_types_of_now,
    ),
)


def pins_of(answer: GoldenAnswer) -> list[Pin]:
    return [pin for pin in PINS if fnmatchcase(str(answer), pin.answers)]


def hudi_rs_answer(table: GoldenTable, answer: GoldenAnswer) -> pa.Table:
    match answer.query:
        case "snapshot":
            return read_hudi_rs(table.path)
        case "time_travel":
            return read_hudi_rs(table.path, as_of=answer.times[0])
        case "incremental":
            return read_hudi_rs(table.path, incremental=table.range_bounds(answer))
    raise AssertionError(answer.query)


@pytest.mark.parametrize("answer", [answer for answer in ANSWERS if not pins_of(answer)], ids=str)
def test_hudi_rs_answers_as_apache_hudi_does(golden: GoldenTables, answer: GoldenAnswer) -> None:
    table = golden.get(answer.table)

    expected = table.expected(answer)

    assert_same_rows(hudi_rs_answer(table, answer), expected)
    if answer.query == "snapshot" and has_metadata_table(answer.table):
        assert_same_rows(read_hudi_rs_by_storage(table.path), expected)


@pytest.mark.parametrize("answer", [answer for answer in ANSWERS if pins_of(answer)], ids=str)
def test_what_hudi_rs_cannot_read_or_reads_otherwise_is_known(golden: GoldenTables, answer: GoldenAnswer) -> None:
    """When this fails because hudi-rs has learnt it: take the pin off the list."""
    table = golden.get(answer.table)
    (pin,) = pins_of(answer)

    if isinstance(pin.found, HudiRsError):
        with pin.found.expected():
            hudi_rs_answer(table, answer)
        return
    actual, expected = hudi_rs_answer(table, answer), table.expected(answer)
    with pytest.raises(AssertionError, match="differ"):
        assert_same_rows(actual, expected)
    pin.found(actual, expected)


def test_each_pin_is_of_some_answer() -> None:
    assert [pin.answers for pin in PINS if not any(pin in pins_of(answer) for answer in ANSWERS)] == []
    assert len(ANSWERS) > 150
