"""An index of the user's could be believed where it is wrong, or wrong where nobody told it: a row is lost or doubled.

The random operations of tests/property/test_own_index_against_dict.py show that it stays true. Here is what else can
be: other kinds of indexes, bad answers, two writers at once, and options that name what is not there.
"""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import (
    HudiTable,
    IndexOf,
    Invalid,
    LocationChanges,
    Unavailable,
    allow_dotted_names,
    register_index,
)
from pyhudi.index.own import protocol
from pyhudi.index.own.known import Known
from tests.support import sqlite_index
from tests.support.own_index import assert_true
from tests.support.sqlite_index import SqliteIndex

DOCS = Path(__file__).parents[4] / "docs"


@dataclass
class Kept:
    """What an index keeps in memory, of one table, and what its methods do beside that."""

    state: str | None = None
    rows: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    told: list[tuple[int, int, int]] = field(default_factory=list)
    before_answer: Callable[[], None] = lambda: None
    change: Callable[[pa.Table], Any] = lambda found: found


class ByPartition:
    """An index that is kept by partition, in memory."""

    is_global = False
    kept = Kept()

    def __init__(self, table: IndexOf) -> None:
        self.mine = type(self).kept

    def state(self) -> str | None:
        return self.mine.state

    def locate(self, keys: pa.Table) -> pa.Table:
        self.mine.before_answer()
        asked = zip(keys["partition_path"].to_pylist(), keys["record_key"].to_pylist(), strict=True)
        found = [(key, path, *self.mine.rows[path, key]) for path, key in asked if (path, key) in self.mine.rows]
        columns = zip(*found, strict=True) if found else [()] * 4
        names = ["record_key", "partition_path", "file_id", "instant"]
        return self.mine.change(pa.table([pa.array(column, pa.string()) for column in columns], names=names))

    def update(self, changes: LocationChanges) -> None:
        located = changes.located.read_all()
        self.mine.told.append((len(changes.emptied), len(changes.gone), len(located)))
        emptied = set(changes.emptied["file_id"].to_pylist())
        gone = {(of["partition_path"], of["record_key"], of["file_id"]) for of in changes.gone.to_pylist()}
        kept = {
            (path, key): of
            for (path, key), of in self.mine.rows.items()
            if of[0] not in emptied and (path, key, of[0]) not in gone
        }
        new = {(of["partition_path"], of["record_key"]): (of["file_id"], of["instant"]) for of in located.to_pylist()}
        self.mine.rows, self.mine.state = {**kept, **new}, changes.state

    def clear(self) -> None:
        self.mine.rows, self.mine.state = {}, None

    def close(self) -> None:
        pass


register_index("by.partition", ByPartition, is_global=False)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    fresh = Kept()
    monkeypatch.setattr(ByPartition, "kept", fresh)
    return fresh


def rows(*of: tuple[str, str, int]) -> pa.Table:
    ids, parts, values = zip(*of, strict=True)
    return pa.table({"id": list(ids), "part": list(parts), "v": list(values)})


def new_table(folder: Path, index: str = "by.partition", **facts: Any) -> HudiTable:
    HudiTable.create(folder / "t", name="t", record_key="id", partition_by="part", **facts)
    return HudiTable.open(folder / "t", options={"hoodie.index.class": index})


def stored(table: HudiTable) -> list[tuple[str, str, int]]:
    found = table.scan(columns=["id", "part", "v"]).to_arrow().to_pylist()
    return sorted((of["id"], of["part"], of["v"]) for of in found)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_index_by_partition_knows_a_key_once_in_each(tmp_path: Path, kept: Kept, kind: str) -> None:
    table = new_table(tmp_path, table_type=kind)
    table.upsert(rows(("a", "p", 1), ("b", "p", 1), ("a", "q", 1)))
    assert table.upsert(rows(("a", "p", 2), ("b", "q", 2))).updated == 1
    assert table.delete(rows(("a", "q", 0), ("b", "p", 0)).select(["id", "part"])).deleted == 2
    assert stored(table) == [("a", "p", 2), ("b", "q", 2)]
    assert sorted(kept.rows) == [("p", "a"), ("q", "b")]


def test_a_commit_of_updates_tells_nothing_but_the_state(tmp_path: Path, kept: Kept) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        kept.state, kept.rows = None, {}
        table = new_table(tmp_path / kind, table_type=kind)
        table.upsert(rows(("a", "p", 1), ("b", "p", 1)))
        before = kept.state
        table.upsert(rows(("a", "p", 2)))
        assert kept.told[-1] == (0, 0, 0)
        assert kept.state != before


def test_a_table_without_meta_fields_has_its_keys_computed(tmp_path: Path, kept: Kept) -> None:
    table = new_table(tmp_path, properties={"hoodie.populate.meta.fields": "false"})
    table.upsert(rows(("a", "p", 1), ("b", "p", 1)))
    table.upsert(rows(("a", "p", 2), ("c", "q", 1)))
    kept.state = None
    table.upsert(rows(("b", "p", 3)))
    assert stored(table) == [("a", "p", 2), ("b", "p", 3), ("c", "q", 1)]
    assert sorted(kept.rows) == [("p", "a"), ("p", "b"), ("q", "c")]


@pytest.mark.parametrize("file_id, instant", [("none", None), (None, "20990101000000000")])
def test_a_location_that_the_table_cannot_have_is_refused(
    tmp_path: Path, kept: Kept, file_id: str | None, instant: str | None
) -> None:
    """The file group is none of the table's, or the commit is none. The key's row lies elsewhere, and would stay."""
    table = new_table(tmp_path)
    table.upsert(rows(("a", "p", 1), ("b", "p", 1)))
    group, commit = kept.rows["p", "a"]
    kept.rows["p", "a"] = file_id or group, instant or commit
    with pytest.raises(Invalid, match=r"expected places of the table as it is now, .* for record key 'a'"):
        table.upsert(rows(("a", "p", 2), ("c", "p", 2)))
    assert stored(table) == [("a", "p", 1), ("b", "p", 1)]

    kept.rows, kept.state = {}, None
    assert table.upsert(rows(("a", "p", 2), ("c", "p", 2))).updated == 1
    assert stored(table) == [("a", "p", 2), ("b", "p", 1), ("c", "p", 2)]


def test_a_location_that_nobody_asked_for_does_not_count(tmp_path: Path, kept: Kept) -> None:
    table = new_table(tmp_path)
    table.upsert(rows(("a", "p", 1), ("b", "p", 1)))
    kept.change = lambda found: pa.concat_tables([found, found, pa.table({
        "record_key": ["e", "a"], "partition_path": ["p", "q"], "file_id": ["none"] * 2, "instant": ["0"] * 2,
    })])  # fmt: skip
    table.upsert(rows(("a", "p", 2)))
    assert stored(table) == [("a", "p", 2), ("b", "p", 1)]


@pytest.mark.parametrize("change, said", [
    (lambda found: found.to_pylist(), "expected an Arrow table"),
    (lambda found: found.drop_columns(["instant"]), "found no 'instant'"),
    (lambda found: found.set_column(2, "file_id", pa.nulls(len(found), pa.string())), "whose file_id is null"),
    (lambda found: found.set_column(2, "file_id", pa.array([[1]] * len(found))), "expected texts"),
    (lambda found: found.append_column("instant", found["instant"]), "found 'instant' 2 times"),
])  # fmt: skip
def test_an_answer_that_is_none_is_refused(
    tmp_path: Path, kept: Kept, change: Callable[[pa.Table], Any], said: str
) -> None:
    table = new_table(tmp_path)
    table.upsert(rows(("a", "p", 1)))
    kept.change = change
    with pytest.raises(Invalid, match=f"index 'by.partition': .*{said}"):
        table.upsert(rows(("a", "p", 2)))
    assert stored(table) == [("a", "p", 1)]


def test_a_write_whose_index_moved_on_is_planned_anew(tmp_path: Path, kept: Kept) -> None:
    """Another writer clusters, and moves the key to another file group, while this one looks keys up."""
    table = new_table(tmp_path, properties={"hoodie.parquet.small.file.limit": "0"})
    for key in "abc":
        table.upsert(rows((key, "p", 1)))

    def cluster() -> None:
        kept.before_answer = lambda: None
        assert table.cluster().requested is not None

    kept.before_answer = cluster
    table.upsert(rows(("a", "p", 2), ("d", "p", 2)))
    assert stored(table) == [("a", "p", 2), ("b", "p", 1), ("c", "p", 1), ("d", "p", 2)]
    assert sorted(kept.rows) == [("p", key) for key in "abcd"]


def test_an_index_that_fails_stops_a_write_before_its_commit_and_never_after(
    tmp_path: Path, kept: Kept, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path)
    table.upsert(rows(("a", "p", 1)))

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(ByPartition, "update", fail)
        with caplog.at_level(logging.WARNING, "pyhudi"):
            table.upsert(rows(("b", "p", 2)))
        assert "landed, but index 'by.partition' could not be told" in caplog.text
        assert stored(table) == [("a", "p", 1), ("b", "p", 2)]
        with pytest.raises(Unavailable, match=r"index .by.partition.: update raised OSError: disk full"):
            table.upsert(rows(("c", "p", 3)))
    assert table.upsert(rows(("b", "p", 3))).updated == 1
    assert stored(table) == [("a", "p", 1), ("b", "p", 3)]


def test_rollback_and_restore_clear_the_index(tmp_path: Path, kept: Kept) -> None:
    table = new_table(tmp_path)
    first = table.upsert(rows(("a", "p", 1)))
    second = table.upsert(rows(("b", "p", 2)))
    table.rollback(second.requested or "")
    assert (kept.state, kept.rows) == (None, {})
    table.upsert(rows(("a", "p", 3)))
    table.restore(first.requested or "")
    assert (kept.state, kept.rows) == (None, {})
    table.upsert(rows(("a", "p", 4), ("c", "p", 4)))
    assert stored(table) == [("a", "p", 4), ("c", "p", 4)]


OTHERS = {"hoodie.index.class": "", "hoodie.index.type": "SIMPLE"}
"""Options of a writer that knows nothing of the index."""


def test_what_others_deleted_is_told_although_a_clean_took_the_files_of_before(tmp_path: Path, kept: Kept) -> None:
    table = new_table(tmp_path, properties={"hoodie.clean.commits.retained": "1"})
    table.upsert(rows(("a", "p", 1), ("b", "p", 1), ("c", "q", 1)))
    assert table.delete(rows(("a", "p", 1)), options=OTHERS).deleted == 1
    for n in range(2, 6):
        table.upsert(rows(("b", "p", n)), options=OTHERS)
    assert any(instant.action == "clean" for instant in table.timeline())
    table.upsert(rows(("c", "q", 2)))
    assert sorted(kept.rows) == [("p", "b"), ("q", "c")]
    assert kept.told[-2][0] == 1, "the file group is told anew"
    assert table.insert(rows(("a", "p", 7)), options={"hoodie.datasource.insert.dup.policy": "drop"}).inserted == 1


def test_what_others_took_back_is_forgotten(tmp_path: Path, kept: Kept) -> None:
    table = new_table(tmp_path)
    table.upsert(rows(("a", "p", 1)))
    second = table.upsert(rows(("b", "p", 2)))
    HudiTable.open(table.path, options=OTHERS).rollback(second.requested or "")
    assert sorted(kept.rows) == [("p", "a"), ("p", "b")]
    table.upsert(rows(("a", "p", 3)))
    assert sorted(kept.rows) == [("p", "a")]


def test_what_was_archived_untold_makes_a_new_index(tmp_path: Path, kept: Kept) -> None:
    few = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = new_table(tmp_path, properties=few)
    table.upsert(rows(("a", "q", 1), ("b", "p", 1)))
    gone = table.delete(rows(("a", "q", 1)), options=OTHERS)
    for n in range(6):
        table.upsert(rows((f"c{n}", "p", n)), options=OTHERS)
    assert gone.requested not in {instant.requested for instant in table.timeline()}
    table.upsert(rows(("b", "p", 2)))
    assert sorted(kept.rows) == [("p", "b"), *(("p", f"c{n}") for n in range(6))]


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    register_index(name := f"none.{tmp_path.name}", lambda _: object())  # type: ignore[arg-type,return-value]
    with pytest.raises(Invalid, match=r"methods state, .*, found object without state, locate, update, clear, close"):
        new_table(tmp_path, name).upsert(rows(("a", "p", 1)))


def test_an_index_that_nobody_registered_is_refused(tmp_path: Path) -> None:
    java = "com.acme.hudi.MyIndex"
    with pytest.raises(Invalid, match=rf"'{java}': expected the name of an index .* classes of Java cannot be called"):
        new_table(tmp_path, java).upsert(rows(("a", "p", 1)))
    with pytest.raises(Invalid, match=r"no table stores it, for Apache Hudi's writers .* fail"):
        HudiTable.create(tmp_path / "u", name="u", record_key="id", properties={"hoodie.index.class": "by.partition"})
    with pytest.raises(Invalid, match="this one is Apache Hudi's"):
        register_index("global_simple", ByPartition)
    with pytest.raises(Invalid, match="already registered"):
        register_index("by.partition", SqliteIndex)  # type: ignore[arg-type]


def test_services_need_no_index_and_a_write_does(tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that knows nothing of the index compacts and clusters; its next write elsewhere learns of that."""
    table = new_table(tmp_path, table_type="MERGE_ON_READ", properties={"hoodie.parquet.small.file.limit": "0"})
    for key in "ab":
        table.upsert(rows((key, "p", 1)))
    table.upsert(rows(("a", "p", 2)))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(protocol._indexes, "_things", {})
        elsewhere.setattr("pyhudi.options.registered._names", {})
        for run in (table.compact, table.cluster, table.clean):
            run()
        with pytest.raises(Invalid, match="expected the name of an index that is registered"):
            table.upsert(rows(("a", "p", 3)))
    assert table.upsert(rows(("a", "p", 3), ("b", "p", 3))).updated == 2
    assert stored(table) == [("a", "p", 3), ("b", "p", 3)]


def test_a_bucket_table_takes_no_other_index(tmp_path: Path) -> None:
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part", properties=buckets)
    with pytest.raises(Invalid, match="places rows by bucket"):
        table.upsert(rows(("a", "p", 1)), options={"hoodie.index.class": "by.partition"})


def test_a_dotted_name_is_loaded_where_the_process_allows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "acme_own.py").write_text(
        "from tests.unit.index.own.test_own_index import ByPartition as Index, ByPartition as Other\n"
        "def keys(batch):\n    return batch.column('id'), batch.column('part')\n"
    )
    monkeypatch.syspath_prepend(str(code))
    monkeypatch.setattr("pyhudi.options.dotted_names._allowed", set())
    asked = {"hoodie.index.class": "acme_own.Index"}
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    with pytest.raises(Invalid, match="allow_dotted_names"):
        table.upsert(rows(("a", "p", 1)), options=asked)
    assert "acme_own" not in sys.modules

    allow_dotted_names("acme_own")
    monkeypatch.setattr(ByPartition, "kept", Kept())
    table.upsert(rows(("a", "p", 1)), options=asked)
    assert ByPartition.kept.rows
    with pytest.raises(Invalid, match="expected a name that Python can import"):
        table.upsert(rows(("a", "p", 1)), options={"hoodie.index.class": "acme_own.Missing"})
    stranger = HudiTable.create(tmp_path / "s", name="s", record_key="id", partition_by="part")
    with (tmp_path / "s" / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.index.class=acme_own.Other\n")
    with pytest.raises(Invalid, match=r"'acme_own\.Other': expected the name of an index"):
        stranger.upsert(rows(("a", "p", 1)))
    made = HudiTable.create(
        tmp_path / "u", name="u", record_key="id", partition_by="part",
        properties={"hoodie.datasource.write.keygenerator.class": "acme_own.keys"},
    )  # fmt: skip
    made.upsert(rows(("a", "p", 1)))
    assert pc.unique(made.scan().to_arrow()["_hoodie_partition_path"]).to_pylist() == ["p"]


def test_the_docs_show_the_index_that_tests_run() -> None:
    shown = (DOCS / "extending.md").read_text(encoding="utf-8")
    code = Path(sqlite_index.__file__ or "").read_text(encoding="utf-8")
    assert code[code.index("class SqliteIndex") :].strip() in shown


def test_sqlite_keeps_several_tables_in_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "index.db")
    register_index(f"file.{tmp_path.name}", lambda table: SqliteIndex(path, table))
    tables = [new_table(tmp_path / name, f"file.{tmp_path.name}") for name in ("one", "two")]
    for n, table in enumerate(tables):
        table.upsert(rows(("a", "p", n), ("b", "q", n)))
        table.upsert(rows(("a", "q", n + 10)))
    for n, table in enumerate(tables):
        assert stored(table) == [("a", "q", n + 10), ("b", "q", n)]
        assert_true(table, path)


def test_a_clean_that_is_archived_by_now_may_have_taken_files() -> None:
    told = Known(frozenset({"5"}), "5", None)

    assert told.may_have_lost_files(replace(told, start="6", writes=frozenset({"6"})))
    assert told.may_have_lost_files(replace(told, clean="6"))
    assert not told.may_have_lost_files(replace(told, writes=frozenset({"5", "6"})))
    assert not replace(told, clean="4").may_have_lost_files(replace(told, clean="4", start="6"))
