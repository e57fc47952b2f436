"""A reader could merge blocks of a log that were rolled back, replaced or torn, or leave out ones that count.

Small tables laid down by hand, each for one rule that no table of Apache Hudi in this suite pins.
Spec: format/log-format.md sections 4 and 5.
"""

from pathlib import Path

import pytest

from pyhudi.errors import CorruptFile
from pyhudi.format.log.block import ROLLBACK_COMMAND
from pyhudi.format.log.writer import encode_rollback_block
from tests.support.made_tables import COMMIT_TIME, EVENT_TIME, MadeTable, done, row, t

ROLLBACK = (Path(__file__).parents[1] / "bytes" / "rollback_h0150.log").read_bytes()
BY, TARGET = "20261121113249251", "20261121113244672"
"""Who rolled back whom in `ROLLBACK`, which Apache Hudi 0.15.0 wrote."""
VERSIONS = pytest.mark.parametrize("version", [5, 6, 8, 9])


def base_name(table: MadeTable, base: str = t(1)) -> str | None:
    return base if table.version <= 6 else None


def based(version: int, *keys: str) -> MadeTable:
    table = MadeTable(version, COMMIT_TIME[version])
    table.base(t(1), *(row(key, 0, "base") for key in keys))
    table.commit(t(1))
    return table


def test_a_rollback_block_takes_back_what_stands_before_it() -> None:
    """Both are archived: nothing but the block tells that the delta commit was rolled back."""
    table = MadeTable(6, COMMIT_TIME[6])
    table.base(t(1), *(row(key, 0, "base") for key in ("a", "b", "c")))
    table.log(t(2), table.rows(t(2), row("a", 0, "two")), base=t(1), number=1)
    table.log(TARGET, table.rows(TARGET, row("a", 0, "gone"), row("b", 0, "gone"), row("new", 0, "gone")),
              table.deletes(TARGET, ("c",), ordering=()), base=t(1), number=2)  # fmt: skip
    table.log(BY, ROLLBACK, base=t(1), number=3)
    later = "20261121114000000"
    table.log(later, table.rows(later, row("b", 0, "later")), base=t(1), number=4)
    table.commit(later)

    assert table.shown() == {"a": "two", "b": "later", "c": "base"}


def test_a_rollback_block_leaves_what_its_instant_wrote_afterwards_and_other_instants() -> None:
    table = based(6, "a", "b", "c")
    table.log(t(2), table.rows(t(2), row("a", 0, "gone"), row("b", 0, "gone")), base=t(1), number=1)
    table.log(t(3), table.rows(t(3), row("c", 0, "three")), base=t(1), number=2)
    table.log(t(4), encode_rollback_block(instant_time=t(4), target_instant_time=t(2)), base=t(1), number=3)
    table.log(t(2), table.rows(t(2), row("a", 0, "again")), base=t(1), number=4)
    table.commit(t(2))
    table.commit(t(3))

    assert table.shown() == {"a": "again", "b": "base", "c": "three"}
    assert ROLLBACK_COMMAND == "0"


def compacted(version: int) -> MadeTable:
    """Delta commits at 2, 3 and 4, and a log compaction at 5 that merged those of 2 and 3.

    What it wrote says nothing of `two`, which 2 wrote: were 2 read still, one would see it.
    """
    table = based(version, "a", "two", "four")
    table.log(t(2), table.rows(t(2), row("a", 0, "two"), row("two", 0, "two")), base=base_name(table), number=1)
    table.log(t(3), table.rows(t(3), row("a", 0, "three")), base=base_name(table), number=2)
    table.log(t(4), table.rows(t(4), row("a", 0, "four"), row("four", 0, "four")), base=base_name(table), number=3)
    block = table.rows(t(5), row("a", 0, "merged"), row("four", 0, "merged"), compacts=[t(2), t(3)])
    table.log(t(5), block, base=base_name(table), number=4)
    for by in (t(2), t(3), t(4)):
        table.commit(by)
    return table


@VERSIONS
def test_a_log_compaction_replaces_its_sources_and_stands_where_they_stood(version: int) -> None:
    """Not at its end, where it was written: what came between would be overwritten by what it merged."""
    table = compacted(version)
    table.commit(t(5))

    assert table.shown() == {"a": "four", "two": "base", "four": "four"}


@VERSIONS
def test_a_log_compaction_that_is_pending_replaces_nothing(version: int) -> None:
    table = compacted(version)
    table.begin(t(5), action="logcompaction")

    assert table.shown() == {"a": "four", "two": "two", "four": "four"}


@VERSIONS
def test_a_log_compaction_of_a_log_compaction_replaces_all_that_went_into_either(version: int) -> None:
    table = compacted(version)
    block = table.rows(t(7), row("a", 0, "all"), compacts=[t(5), t(4)])
    table.log(t(6), table.rows(t(6), row("six", 0, "six")), base=base_name(table), number=5)
    table.log(t(7), block, base=base_name(table), number=6)
    for by in (t(5), t(6), t(7)):
        table.commit(by)

    assert table.shown() == {"a": "all", "two": "base", "four": "base", "six": "six"}


@VERSIONS
def test_a_log_compaction_whose_sources_are_in_the_base_file_does_not_count(version: int) -> None:
    """A compaction that was planned while it ran has merged them, with later writes. Apache Hudi 1.2.0 passes over it:
    `tests/interop/test_compactions.py`."""
    table = based(version, "a")
    block = table.rows(t(5), row("a", 0, "merged"), compacts=[t(2), t(3)])
    table.log(t(5), block, base=base_name(table), number=4)
    table.log(t(6), table.rows(t(6), row("six", 0, "six")), base=base_name(table), number=5)
    table.commit(t(5))
    table.commit(t(6))

    assert table.shown() == {"a": "base", "six": "six"}


@VERSIONS
@pytest.mark.parametrize("kept_bytes", [10, 40, -1], ids=["in its head", "in its header", "but for its last byte"])
def test_a_torn_block_is_passed_over_and_what_follows_it_is_read(
    version: int, kept_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    table = based(version, "a", "torn", "after", "last")
    torn = table.rows(t(2), row("torn", 0, "torn"))[:kept_bytes]
    whole = table.rows(t(2), row("a", 0, "log")), table.rows(t(2), row("after", 0, "log"))
    table.log(t(2), whole[0], torn, whole[1], base=base_name(table))
    table.log(t(3), table.rows(t(3), row("last", 0, "log")), torn, base=base_name(table), number=2)
    table.commit(t(2))
    table.commit(t(3))

    assert table.shown() == {"a": "log", "torn": "base", "after": "log", "last": "log"}
    assert caplog.text.count(f"{len(torn)} bytes that a writer left which died are passed over") == 2


@VERSIONS
def test_a_block_whose_size_was_damaged_hides_no_other(version: int) -> None:
    """A size that leads beyond the file, or into another block: the next magic tells where that one starts."""
    table = based(version, "a", "b", "c")
    damaged = bytearray(table.rows(t(2), row("b", 0, "damaged")))
    damaged[13] ^= 0xFF
    far = bytearray(damaged)
    far[8] ^= 0x01
    table.log(t(2), table.rows(t(2), row("a", 0, "log")), bytes(damaged), bytes(far),
              table.rows(t(2), row("c", 0, "log")), base=base_name(table))  # fmt: skip
    table.commit(t(2))

    assert table.shown() == {"a": "log", "b": "base", "c": "log"}


@VERSIONS
def test_damage_within_a_whole_block_is_an_error_and_no_answer(version: int) -> None:
    table = based(version, "a")
    block = bytearray(table.rows(t(2), row("a", 0, "log")))
    block[14 + 7] = 9  # a block type that there is none of
    table.log(t(2), bytes(block), base=base_name(table))
    table.commit(t(2))

    with pytest.raises(CorruptFile, match=r"\.log\.1"):
        table.shown()


@pytest.mark.parametrize("version", [6])
def test_of_the_attempts_of_a_task_of_014_the_one_with_the_most_blocks_counts(version: int) -> None:
    """Its blocks say which attempt wrote them; the other one stopped half-way and is not half of the answer."""
    table = MadeTable(version, EVENT_TIME[version])
    table.base(t(1), row("a", 0, "base"), row("b", 0, "base"))
    table.commit(t(1))
    table.log(t(2), table.rows(t(2), row("a", 9, "lost"), BLOCK_IDENTIFIER="0,0"), base=t(1), number=1)
    table.log(
        t(2),
        table.rows(t(2), row("a", 5, "kept"), BLOCK_IDENTIFIER="1,0"),
        table.rows(t(2), row("b", 5, "kept"), BLOCK_IDENTIFIER="1,1"),
        base=t(1),
        number=2,
    )
    table.commit(t(2), done(2))

    assert table.shown() == {"a": "kept", "b": "kept"}
