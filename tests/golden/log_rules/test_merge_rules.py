"""A reader could merge by another rule than the table's properties ask for, by too few ordering columns, or drop the
values that a losing row contributes.

Small tables laid down by hand, each for one rule that no table of Apache Hudi in this suite pins.
Spec: format/log-format.md sections 6, 6.1 and 6.2.
"""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from pyhudi.errors import CorruptFile
from pyhudi.merge.mergers import COMMIT_TIME_ID, CUSTOM_ID, EVENT_TIME_ID, PAYLOAD_ID
from tests.support.made_tables import (
    COLUMNS,
    COMMIT_TIME,
    DEFAULT_PAYLOAD,
    EVENT_TIME,
    LATEST_PAYLOAD,
    MadeTable,
    row,
    t,
)

MODE = "hoodie.record.merge.mode"
ID = "hoodie.record.merge.strategy.id"
ID_BEFORE_8 = "hoodie.compaction.record.merger.strategy"
PAYLOAD = "hoodie.compaction.payload.class"
TS_BEFORE_9 = {"hoodie.table.precombine.field": "ts"}
TS = {"hoodie.table.ordering.fields": "ts"}
EVENT, COMMIT, CUSTOM = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"

BY_EVENT_TIME = {"base": "base 100", "log": "log 20"}
BY_COMMIT_TIME = {"base": "log 50", "log": "log 10"}
LOG_BY_EVENT_TIME = {"base": "log 50", "log": "log 20"}
"""Within the log the greater ordering value, which then wins over the base row."""


def late_rows(version: int, properties: Mapping[str, str]) -> MadeTable:
    """Of `base` the log has a row that is late for the base row, of `log` one that is late within the log."""
    table = MadeTable(version, properties)
    on = t(1) if version <= 6 else None
    table.base(t(1), row("base", 100, "base 100"), row("log", 0, "base 0"))
    table.log(t(2), table.rows(t(2), row("base", 50, "log 50"), row("log", 20, "log 20")), base=on, number=1)
    table.log(t(3), table.rows(t(3), row("log", 10, "log 10")), base=on, number=2)
    for by in (t(1), t(2), t(3)):
        table.commit(by)
    return table


@pytest.mark.parametrize(
    "version, properties, shown",
    [
        # Version 6: the payload class decides, as in 0.x, whatever the strategy says.
        (6, {**TS_BEFORE_9, PAYLOAD: DEFAULT_PAYLOAD}, BY_EVENT_TIME),
        (6, {**TS_BEFORE_9, PAYLOAD: DEFAULT_PAYLOAD, ID_BEFORE_8: COMMIT_TIME_ID}, BY_EVENT_TIME),
        (6, {**TS_BEFORE_9, PAYLOAD: LATEST_PAYLOAD}, LOG_BY_EVENT_TIME),
        (6, {**TS_BEFORE_9, PAYLOAD: LATEST_PAYLOAD, ID_BEFORE_8: EVENT_TIME_ID}, LOG_BY_EVENT_TIME),
        (6, {PAYLOAD: LATEST_PAYLOAD}, BY_COMMIT_TIME),
        # Without one: the strategy, then whether there is an ordering column.
        (6, {**TS_BEFORE_9, ID_BEFORE_8: COMMIT_TIME_ID}, BY_COMMIT_TIME),
        (6, TS_BEFORE_9, BY_EVENT_TIME),
        (6, {}, BY_COMMIT_TIME),
        # Version 8: the mode; without it the strategy, then the payload class, then the ordering column.
        (8, {**TS_BEFORE_9, MODE: COMMIT}, BY_COMMIT_TIME),
        (8, {**TS_BEFORE_9, ID: COMMIT_TIME_ID}, BY_COMMIT_TIME),
        (8, {**TS_BEFORE_9, ID: EVENT_TIME_ID}, BY_EVENT_TIME),
        (8, {**TS_BEFORE_9, PAYLOAD: LATEST_PAYLOAD}, BY_COMMIT_TIME),
        (8, {**TS_BEFORE_9, PAYLOAD: DEFAULT_PAYLOAD}, BY_EVENT_TIME),
        (8, TS_BEFORE_9, BY_EVENT_TIME),
        (8, {}, BY_COMMIT_TIME),
        # CUSTOM with the strategy of payloads: the payload class says it all.
        (8, {**TS_BEFORE_9, MODE: CUSTOM, ID: PAYLOAD_ID, PAYLOAD: DEFAULT_PAYLOAD}, BY_EVENT_TIME),
        (8, {**TS_BEFORE_9, MODE: CUSTOM, ID: PAYLOAD_ID, PAYLOAD: LATEST_PAYLOAD}, BY_COMMIT_TIME),
        (8, {**TS_BEFORE_9, ID: PAYLOAD_ID, PAYLOAD: LATEST_PAYLOAD}, BY_COMMIT_TIME),
        # A strategy that says no more than that it is a custom one contradicts no payload class.
        (8, {**TS_BEFORE_9, ID: CUSTOM_ID, PAYLOAD: DEFAULT_PAYLOAD}, BY_EVENT_TIME),
        # An upgrade leaves the old strategy where it was, and the new mode may say otherwise.
        (8, {**TS_BEFORE_9, MODE: EVENT, ID: EVENT_TIME_ID, ID_BEFORE_8: COMMIT_TIME_ID}, BY_EVENT_TIME),
        (9, {**TS, MODE: COMMIT, ID_BEFORE_8: EVENT_TIME_ID}, BY_COMMIT_TIME),
        # Version 9 keeps the payload class of before under a name that nothing is merged by.
        (9, {**TS, MODE: EVENT, "hoodie.table.legacy.payload.class": LATEST_PAYLOAD}, BY_EVENT_TIME),
        (9, {**TS, MODE: COMMIT, "hoodie.table.legacy.payload.class": DEFAULT_PAYLOAD}, BY_COMMIT_TIME),
        (9, {**TS, MODE: COMMIT}, BY_COMMIT_TIME),
    ],
)
def test_mode_strategy_and_payload_class_decide_in_their_order(
    version: int, properties: Mapping[str, str], shown: Mapping[str, str]
) -> None:
    assert late_rows(version, properties).shown() == shown


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize(
    "properties",
    [
        {MODE: EVENT, ID: COMMIT_TIME_ID},
        {MODE: COMMIT, ID: EVENT_TIME_ID},
        {MODE: EVENT, PAYLOAD: LATEST_PAYLOAD},
        {MODE: COMMIT, PAYLOAD: DEFAULT_PAYLOAD},
        {ID: EVENT_TIME_ID, PAYLOAD: LATEST_PAYLOAD},
    ],
)
def test_where_they_contradict_each_other_there_is_no_answer(version: int, properties: Mapping[str, str]) -> None:
    table = late_rows(version, {**TS_BEFORE_9, **properties})

    with pytest.raises(CorruptFile, match="merge"):
        table.shown()


TWO = COLUMNS.append(pa.field("seq", pa.int32()))
ORDERED_BY_TWO = {"hoodie.table.ordering.fields": "ts,seq", MODE: EVENT}


def test_several_ordering_columns_are_compared_one_after_the_other() -> None:
    table = MadeTable(9, ORDERED_BY_TWO, TWO)
    keys = ("first", "second", "tie", "under", "late", "log")
    table.base(t(1), *(row(key, 10, "base", seq=5) for key in keys))
    table.log(
        t(2),
        table.rows(
            t(2),
            row("first", 11, "log", seq=1),
            row("second", 10, "log", seq=6),
            row("tie", 10, "log", seq=5),
            row("under", 10, "log", seq=4),
            row("late", 9, "log", seq=99),
            row("log", 20, "log", seq=7),
        ),
    )
    table.log(t(3), table.rows(t(3), row("log", 20, "late", seq=6), row("second", 10, "late", seq=4)))
    for by in (t(1), t(2), t(3)):
        table.commit(by)

    wins = {"first": "log", "second": "log", "tie": "log", "log": "log"}
    assert table.shown() == {**wins, "under": "base", "late": "base"}


def test_deletes_carry_all_ordering_columns_or_none() -> None:
    table = MadeTable(9, ORDERED_BY_TWO, TWO)
    keys = ("less", "equal", "more", "none", "log")
    table.base(t(1), *(row(key, 10, "base", seq=5) for key in keys))
    table.log(t(2), table.rows(t(2), row("log", 20, "log", seq=7)))
    deletes = ("less", 10, 4), ("equal", 10, 5), ("more", 11, 0), ("none", None, None), ("log", 20, 6)
    table.log(t(3), table.deletes(t(3), *deletes, ordering=("ts", "seq")))
    for by in (t(1), t(2), t(3)):
        table.commit(by)

    assert table.shown() == {"less": "base", "log": "log"}


WIDE = COLUMNS.append(pa.field("w", pa.string())).append(pa.field("x", pa.string()))


@pytest.mark.parametrize("version", [8, 9])
def test_a_partial_row_that_loses_gives_the_columns_that_the_winner_does_not_have(version: int) -> None:
    """`a`: over a partial row, `whole`: over a whole one, `late`: over the base row. `one`: it is the only one."""
    table = MadeTable(version, EVENT_TIME[version], WIDE)
    table.base(t(1), *(row(key, 1, "base", w="base", x="base") for key in ("a", "whole", "one")))
    table.base(t(1), row("late", 99, "base", w="base", x="base"), group="g-0")
    ten, five = {"ts": 10, "v": "ten", "x": "ten"}, {"ts": 5, "v": "five", "w": "five"}
    table.log(
        t(2),
        table.partial_rows(t(2), {"id": "a", **ten}, {"id": "one", **ten}),
        table.rows(t(2), row("whole", 10, "ten", w="ten", x=None)),
    )
    table.log(
        t(3),
        table.partial_rows(t(3), {"id": "a", **five}, {"id": "whole", **five}),
        table.partial_rows(t(3), {"id": "whole", "ts": 6, "x": "six"}),
    )
    table.log(t(3), table.partial_rows(t(3), {"id": "late", **five}), group="g-0")
    for by in (t(1), t(2), t(3)):
        table.commit(by)

    assert table.shown("v") == {"a": "ten", "whole": "ten", "one": "ten", "late": "base"}
    assert table.shown("w") == {"a": "five", "whole": "ten", "one": "base", "late": "base"}
    assert table.shown("x") == {"a": "ten", "whole": None, "one": "ten", "late": "base"}
    assert table.shown("ts") == {"a": 10, "whole": 10, "one": 10, "late": 99}


@pytest.mark.parametrize("version", [8, 9])
def test_by_commit_time_a_partial_row_gives_all_that_it_has(version: int) -> None:
    table = MadeTable(version, COMMIT_TIME[version], WIDE)
    table.base(t(1), row("a", 99, "base", w="base"))
    table.log(t(2), table.partial_rows(t(2), {"id": "a", "ts": 10, "v": "ten"}))
    table.log(t(3), table.partial_rows(t(3), {"id": "a", "ts": 5, "w": None}))
    for by in (t(1), t(2), t(3)):
        table.commit(by)

    assert (table.shown("v"), table.shown("w")) == ({"a": "ten"}, {"a": None})


UNAVAILABLE = "__debezium_unavailable_value"
FILLS = pytest.mark.parametrize(
    "properties, open_value",
    [
        ({"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, None),
        (
            {
                "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
                "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": UNAVAILABLE,
            },
            UNAVAILABLE,
        ),
    ],
    ids=["defaults", "unavailable"],
)


@FILLS
def test_a_newer_row_that_loses_fills_what_the_winner_leaves_open(
    properties: Mapping[str, str], open_value: str | None
) -> None:
    """`base`: it loses to the base row, `log`: within the log. A value that it leaves open itself fills nothing."""
    table = MadeTable(9, {**EVENT_TIME[9], **properties}, WIDE)
    table.base(t(1), row("base", 99, open_value, w="base"), row("log", 0, "base", w="base"))
    table.log(t(2), table.rows(t(2), row("log", 20, open_value, w="twenty")))
    table.log(t(3), table.rows(t(3), row("base", 5, "late", w="late"), row("log", 10, "late", w=open_value)))
    for by in (t(1), t(2), t(3)):
        table.commit(by)

    assert table.shown("v") == {"base": "late", "log": "late"}
    assert table.shown("w") == {"base": "base", "log": "twenty"}
    assert table.shown("ts") == {"base": 99, "log": 20}


@FILLS
def test_a_newer_row_that_wins_leaves_what_it_has_not(properties: Mapping[str, str], open_value: str | None) -> None:
    table = MadeTable(9, {**EVENT_TIME[9], **properties}, WIDE)
    table.base(t(1), row("a", 1, "base", w="base"), row("gone", 1, "base", w="base"))
    table.log(t(2), table.rows(t(2), row("a", 20, open_value, w="twenty")), table.deletes(t(2), ("gone", 2)))
    table.log(t(3), table.rows(t(3), row("gone", 3, open_value, w="three")))
    for by in (t(1), t(2), t(3)):
        table.commit(by)

    assert table.shown("v")["a"] == "base"
    assert table.shown("w") == {"a": "twenty", "gone": "three"}
