"""What one side overwrote or deleted by partition could still be there for the other, or come back: when its files are
cleaned, when its writer died, when the metadata table lists them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.storage.local import LocalStorage
from pyhudi.testing.crashing import Crash
from tests.interop.cow_rows import META_BUT_TIME, Row, key_range, row, rows, table_of
from tests.interop.cow_tables import SHAPES, Shape, Shared, next_ms
from tests.interop.test_cow_tables import BEGIN, END, INCREMENTAL, DyingAt, leftovers, leftovers_for_hudi, uncommit
from tests.support.compare import assert_same_rows
from tests.support.hudi_rs import read_hudi_rs
from tests.support.reference.client import ReferenceHudi

TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
PLAIN, ENCODED = SHAPES[0], SHAPES[3]


class Replaced(Shared):
    """A shared table whose partitions are replaced by both sides."""

    def path_of(self, one: Row) -> str:
        """The partition path of a row, in the shapes that are used here."""
        if self.shape is PLAIN:
            return str(one["city"])
        region = one["region"].replace("/", "%2F")
        return f"{region}/{one['city']}"

    def in_partitions_of(self, new: list[Row]) -> Callable[[Row], bool]:
        paths = {self.path_of(one) for one in new}
        return lambda one: self.path_of(one) in paths

    def overwrite(self, new: list[Row], *, whole: bool = False) -> str:
        write = self.ours.insert_overwrite_table if whole else self.ours.insert_overwrite
        requested = write(table_of(new)).requested
        assert requested is not None
        self.model.replace(requested, (lambda one: True) if whole else self.in_partitions_of(new), new)
        return requested

    def delete_partition(self, path: str) -> str:
        requested = self.ours.delete_partitions([path]).requested
        assert requested is not None
        self.model.replace(requested, lambda one: self.path_of(one) == path)
        return requested

    def hudi_replace(self, hudi: ReferenceHudi, operation: str, new: list[Row], path: str = "", **options: Any) -> str:
        known = {instant.requested for instant in self.ours.timeline()}
        named = {TO_DELETE: path} if path else {}
        hudi.write(self.path, table_of(new), operation=operation, **self.hudi_options(), **named, **options)
        made = [i for i in self.ours.timeline() if i.requested not in known and i.action == "replacecommit"]
        assert len(made) == 1, made
        requested = made[0].requested
        if operation == "delete_partition":
            self.model.replace(requested, lambda one: self.path_of(one) == path)
        else:
            whole = operation == "insert_overwrite_table"
            self.model.replace(requested, (lambda one: True) if whole else self.in_partitions_of(new), new)
        return requested


@pytest.mark.parametrize("shape", [PLAIN, ENCODED], ids=lambda shape: shape.name)
def test_hudi_reads_what_we_replaced_by_every_query(tmp_path: Path, hudi_102: ReferenceHudi, shape: Shape) -> None:
    shared = Replaced(tmp_path / "rides", shape)
    path, model = shared.path, shared.model
    first = rows(key_range(0, 120), turn=1)
    gone = shared.path_of(row("key-00003", turn=1, ts=1))
    commits = [
        shared.bulk_insert(first),
        shared.overwrite(rows(key_range(200, 230, 2), turn=2, ts=0)),
        shared.delete_partition(gone),
    ]
    shared.check(hudi_102)
    commits += [
        shared.upsert(rows(key_range(0, 40, 3), turn=3)),
        shared.overwrite(rows(key_range(300, 330), turn=4), whole=True),
        shared.upsert(rows(key_range(310, 340), turn=5)),
    ]
    shared.check(hudi_102)
    assert_same_rows(read_hudi_rs(path), shared.check_ours())
    for requested in commits:
        then = shared.ours.scan(as_of=requested).to_arrow()
        assert_same_rows(then, model.table(requested), ignore_columns=META_BUT_TIME)
        assert_same_rows(hudi_102.read(path, **{"as.of.instant": requested}), then)
    misspelled = ("region",) if "urlencode" in str(shape.properties) else ()
    for first_at, last_at in ((0, 1), (0, 3), (2, 5)):
        start, end = shared.completed(commits[first_at]), shared.completed(commits[last_at])
        changes = shared.ours.incremental(start, end).to_arrow()
        expected = model.changed(commits[first_at + 1 : last_at + 1])
        assert_same_rows(changes, expected, ignore_columns=META_BUT_TIME)
        found = hudi_102.read(path, **INCREMENTAL, **{BEGIN: next_ms(start), END: end})
        assert_same_rows(found, changes, ignore_columns=misspelled)


def test_both_replace_in_turns_and_what_is_gone_stays_gone_when_hudi_cleans(
    tmp_path: Path, hudi_102: ReferenceHudi
) -> None:
    shared = Replaced(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.hudi_replace(hudi_102, "insert_overwrite", rows(key_range(201, 231, 2), turn=2))
    shared.check(hudi_102)
    shared.overwrite(rows(key_range(400, 420, 2), turn=3))
    shared.hudi_replace(hudi_102, "delete_partition", rows(["key-00000"], turn=1), "rome")
    shared.check(hudi_102)
    shared.upsert(rows(key_range(401, 441), turn=4))
    shared.check(hudi_102)
    shared.hudi_replace(hudi_102, "insert_overwrite_table", rows(key_range(500, 530), turn=5))
    shared.check(hudi_102)
    shared.delete_partition("oslo")

    eager = {"hoodie.clean.commits.retained": 1}
    before = {file.name for file in shared.base_files()}
    for turn in (6, 7, 8):
        shared.hudi_write(hudi_102, "upsert", rows(key_range(501, 531, 2), turn=turn), **eager)
    assert before - {file.name for file in shared.base_files()}, "nothing was cleaned"
    shared.check(hudi_102)
    shared.upsert(rows(key_range(500, 540), turn=9))
    shared.overwrite(rows(key_range(600, 610, 2), turn=10))
    shared.check(hudi_102)


MOMENTS = (
    (".replacecommit.requested'", True),
    (".replacecommit.inflight'", True),
    (".parquet'", True),
    (".deltacommit'", True),
    (".replacecommit'", False),
)


def test_hudi_rolls_back_the_replacements_that_we_left_when_we_died(tmp_path: Path, hudi_102: ReferenceHudi) -> None:
    shared = Replaced(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 40), turn=1))
    for turn, (mark, lands) in enumerate(MOMENTS, 2):
        disk = DyingAt(LocalStorage(str(shared.path)), survives=1 << 30, lands=lands, mark=mark)
        with pytest.raises(Crash, match=re.escape(mark)):
            HudiTable.open(shared.path, storage=disk).insert_overwrite_table(table_of(rows(key_range(0, 9), turn=99)))
        dead = [i.requested for i in shared.ours.timeline() if i.action == "replacecommit" and i.completed is None]
        assert len(dead) == 1, disk.fatal
        assert_same_rows(hudi_102.read(shared.path), shared.check_ours())
        shared.hudi_write(hudi_102, "upsert", rows(key_range(turn, 50, 5), turn=turn))
        assert_same_rows(hudi_102.read(shared.path), shared.check_ours())
        assert [file for one in dead for file in leftovers_for_hudi(shared, one)] == []
    shared.check(hudi_102)


@pytest.mark.parametrize("operation", ["insert_overwrite", "delete_partition"])
def test_we_roll_back_the_replacement_that_hudi_left_when_it_died(
    tmp_path: Path, hudi_102: ReferenceHudi, operation: str
) -> None:
    shared = Replaced(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 60), turn=1))
    before = dict(shared.model.rows)
    path = "rome" if operation == "delete_partition" else ""
    dead = shared.hudi_replace(hudi_102, operation, rows(key_range(1, 9, 2), turn=3), path)
    uncommit(shared, dead, leaves_markers=operation == "insert_overwrite", listed=True)
    shared.model.rows = before
    del shared.model.past[dead]
    assert_same_rows(hudi_102.read(shared.path), shared.check_ours())

    shared.upsert(rows(key_range(10, 50, 3), turn=4))
    assert leftovers(shared, dead) == []
    shared.check(hudi_102)
