"""A table that was upgraded from version 6 has logs that are called after base files and pending compactions, and a
reader that takes these names for delta commits' would lose what they hold.

The tables are one that Apache Hudi 1.2.0 upgraded, as it left it, and others laid down by hand.
Spec: format/versions.md section 3, "Hazards"; format/timeline.md section 7.
"""

import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.made_tables import COMMIT_TIME, MadeTable, done, row, t

TABLES = Path(__file__).parents[1] / "upgraded"
FIRST, UPDATED, DELETED, LAST = "20261121111904527", "20261121111940326", "20261121111947363", "20261121111954220"
"""The delta commits: 40 keys; keys 0 to 9; without 5 to 7; keys 20 to 29, while a compaction was pending."""

BY_COMPLETION = pytest.mark.parametrize("version", [8, 9])


def writer_of(key: int, *, until: str = LAST) -> str:
    if 20 <= key < 30 and until >= LAST:
        return LAST
    return UPDATED if key < 10 and until >= UPDATED else FIRST


def expected(*, until: str = LAST) -> dict[str, tuple[float, int, str]]:
    """Value, ordering value and commit time of each key. Apache Hudi says the same before the upgrade, and after the
    compaction has completed; in between it loses what the last delta commit wrote."""
    ts = {FIRST: 1, UPDATED: 2, LAST: 4}
    keys = [key for key in range(40) if key not in (5, 6, 7) or until < DELETED]
    writers = {key: writer_of(key, until=until) for key in keys}
    return {str(key): (1.5 * key, ts[by], by) for key, by in writers.items()}


def answer(table: HudiTable, **query: str) -> dict[str, tuple[float, int, str]]:
    rows = table.scan(**query).to_arrow().to_pylist()  # type: ignore[arg-type]
    found = {row["k"]: (row["v"], row["ts"], row["_hoodie_commit_time"]) for row in rows}
    assert len(found) == len(rows)
    return found


def unpacked(folder: Path, version: int) -> Path:
    name = f"upgrade_chain_mor_{version}"
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder / name


@BY_COMPLETION
def test_no_row_vanishes_while_a_compaction_is_pending_that_was_so_before_the_upgrade(
    tmp_path: Path, version: int
) -> None:
    table = HudiTable.open(unpacked(tmp_path, version))
    assert [i.action for i in table.timeline() if i.completed is None] == ["compaction"]

    assert answer(table) == expected()
    assert answer(table, as_of=DELETED) == expected(until=DELETED)
    assert answer(table, as_of=UPDATED) == expected(until=UPDATED)
    assert answer(table, query="read_optimized") == expected(until=FIRST)
    changed = table.incremental().to_arrow()
    assert dict(
        zip(changed.column("k").to_pylist(), changed.column("_hoodie_commit_time").to_pylist(), strict=True)
    ) == {key: by for key, (_, _, by) in expected().items()}


@BY_COMPLETION
def test_writes_and_the_pending_compaction_lose_no_row_of_before_the_upgrade(tmp_path: Path, version: int) -> None:
    """The plan is Apache Hudi's. Change data, which this release does not write, is switched off first."""
    path = unpacked(tmp_path, version)
    properties = path / ".hoodie" / "hoodie.properties"
    stored = properties.read_text(encoding="latin-1")
    properties.write_text(
        stored.replace("hoodie.table.cdc.enabled=true", "hoodie.table.cdc.enabled=false"), encoding="latin-1"
    )
    table = HudiTable.open(path)
    written = pa.table({"k": ["20", "38"], "v": [-1.0, -1.0], "ts": [3, 3], "p": ["0", "0"]})

    result = table.upsert(written)
    rows = {**expected(), "38": (-1.0, 3, result.requested)}  # that of 20 is late for the log of before
    assert answer(table) == rows

    table.compact()
    assert [i for i in table.timeline() if i.completed is None] == []
    assert answer(table) == rows


def upgraded(version: int) -> MadeTable:
    """Base file at 1 and two logs upon it at 2 and 3; a compaction at 4, and a log at 5 that is called after it."""
    table = MadeTable(version, COMMIT_TIME[version] | {"hoodie.table.initial.version": "6"})
    table.base(t(1), *(row(key, 0, "base") for key in ("a", "b", "c")))
    table.named_log(t(1), t(2), table.rows(t(2), row("a", 0, "two"), row("b", 0, "two")), number=1)
    table.named_log(t(1), t(3), table.rows(t(3), row("a", 0, "three")), number=2)
    table.named_log(t(4), t(5), table.rows(t(5), row("b", 0, "five"), row("c", 0, "five")))
    return table


@BY_COMPLETION
def test_a_log_called_after_its_base_file_stays_with_it_whenever_it_completed(version: int) -> None:
    """Completion times of an upgraded table come from files' times of change, and may be of after the compaction.

    Here what the compaction made of them shows that they are not merged again.
    """
    table = upgraded(version)
    table.base(t(4), row("a", 0, "compacted"), row("b", 0, "compacted"), row("c", 0, "compacted"))
    for by in (t(1), t(2), t(3), t(5)):
        table.commit(by, done(30))
    table.commit(t(4), done(30), action="commit")

    assert table.shown() == {"a": "compacted", "b": "five", "c": "five"}


@BY_COMPLETION
def test_what_is_written_after_the_upgrade_comes_after_what_was_written_before(version: int) -> None:
    """The log of 9 is called after itself, that of 5 after the compaction: by their slices 9 would come first."""
    table = upgraded(version)
    table.log(t(9), table.rows(t(9), row("c", 0, "nine")))
    for by in (t(1), t(2), t(3), t(5), t(9)):
        table.commit(by)
    table.begin(t(4), action="compaction", state="REQUESTED")

    assert table.shown() == {"a": "three", "b": "five", "c": "nine"}
    assert table.shown(as_of=t(5)) == {"a": "three", "b": "five", "c": "five"}
    assert table.shown(as_of=t(3)) == {"a": "three", "b": "two", "c": "base"}

    table.base(t(4), row("a", 0, "three"), row("b", 0, "two"), row("c", 0, "base"))
    table.commit(t(4), done(20), action="commit")
    assert table.shown() == {"a": "three", "b": "five", "c": "nine"}


@BY_COMPLETION
def test_blocks_are_told_by_their_own_instants(version: int) -> None:
    """Among those of a log that is called after another instant some may not have completed."""
    table = upgraded(version)
    dead = table.rows(t(6), row("b", 0, "dead")), table.rows(t(7), row("c", 0, "dead"))
    table.named_log(t(4), t(6), dead[0], number=2)
    table.named_log(t(1), t(7), dead[1], number=3)
    for by in (t(1), t(2), t(3), t(5)):
        table.commit(by)
    table.begin(t(4), action="compaction", state="REQUESTED")
    table.begin(t(6))

    assert table.shown() == {"a": "three", "b": "five", "c": "five"}


@BY_COMPLETION
def test_logs_of_two_writes_under_one_name_and_number_are_both_read(version: int) -> None:
    """Each has the write token of its own task; the commit that the name tells wrote neither."""
    table = upgraded(version)
    table.named_log(t(1), t(6), table.rows(t(6), row("a", 0, "six")), number=1, token="7-8-9")
    for by in (t(1), t(2), t(3), t(5), t(6)):
        table.commit(by)
    table.begin(t(4), action="compaction", state="REQUESTED")

    assert table.shown()["b"] == "five"
    assert table.shown(as_of=t(3)) == {"a": "three", "b": "two", "c": "base"}
