"""A table's folder could hold links, pipes and made-up plans that lead reads and deletions out of the table.

Each test puts one there, as whoever may write into the folder could, and looks at what is outside.
"""

import errno
import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable, Unavailable, Unsupported
from pyhudi.format.timeline.records import InstantInfo, RollbackPlan, RollbackRequest
from pyhudi.storage import links
from pyhudi.storage.local import LocalStorage
from pyhudi.txn.undo.rollback_plan import delete_files


def rows(*keys: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "city": ["oslo"] * len(keys), "ts": [ts] * len(keys)})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="city", ordering="ts")
    made.bulk_insert(rows("a", "b"))
    return made


def test_the_target_of_a_link_in_the_guards_place_is_not_touched(table: HudiTable, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("secret")
    guard = Path(table.path) / ".hoodie" / ".pyhudi_guard"
    guard.unlink()
    guard.symlink_to(private)

    with pytest.raises((Unavailable, Unsupported), match="pyhudi_guard"):
        table.upsert(rows("a", ts=2))

    assert private.read_text() == "secret"


def test_a_base_file_that_is_a_link_is_not_copied(table: HudiTable, tmp_path: Path) -> None:
    (base,) = (Path(table.path) / "oslo").glob("*.parquet")
    private = tmp_path / "private.parquet"
    base.rename(private)
    base.symlink_to(private)

    for call in (lambda: table.scan().to_arrow(), lambda: table.upsert(rows("a", ts=2))):
        with pytest.raises(HudiError, match=r"found a link; pyhudi follows none|expected a file, found none"):
            call()

    assert [file for file in (Path(table.path) / "oslo").glob("*.parquet") if not file.is_symlink()] == []


def test_a_partition_that_is_a_link_is_not_read_or_cleaned(table: HudiTable, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    partition = Path(table.path) / "oslo"
    partition.rename(outside)
    partition.symlink_to(outside)
    before = sorted(os.listdir(outside))
    storage = LocalStorage(table.path)

    (name,) = (name for name in before if name.endswith(".parquet"))
    calls: list[Callable[[], object]] = [
        lambda: storage.get(f"oslo/{name}"),
        lambda: storage.open_input(f"oslo/{name}"),
        lambda: storage.put("oslo/new", b"x"),
        lambda: storage.put_new("oslo/new", b"x"),
        lambda: storage.make_folder("oslo/new"),
        lambda: storage.delete(f"oslo/{name}"),
        lambda: storage.delete_prefix("oslo"),
        lambda: list(storage.list("oslo")),
        lambda: list(storage.list("", recursive=True)),
        lambda: list(storage.list_folders("")),
        lambda: table.scan().to_arrow(),
        lambda: HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"}).scan().to_arrow(),
    ]
    for call in calls:
        with pytest.raises(Unsupported, match=r"oslo: expected a regular file or folder, found a link"):
            call()

    assert sorted(os.listdir(outside)) == before


def test_a_file_that_is_a_link_is_no_gap_in_a_listing(table: HudiTable, tmp_path: Path) -> None:
    """Without the metadata table, a listing is all that tells of the files."""
    (base,) = (Path(table.path) / "oslo").glob("*.parquet")
    base.rename(tmp_path / "elsewhere.parquet")
    base.symlink_to(tmp_path / "elsewhere.parquet")

    unlisted = HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"})
    with pytest.raises(Unsupported, match=f"{base.name}: expected a regular file or folder, found a link"):
        unlisted.scan().to_arrow()


@pytest.mark.parametrize("kind", ["a log file", "an instant", "a partition metafile", "a file that is gone"])
def test_a_link_with_the_name_of_a_tables_file_is_refused(table: HudiTable, tmp_path: Path, kind: str) -> None:
    root = Path(table.path)
    (base,) = (root / "oslo").glob("*.parquet")
    file = {
        "a log file": root / "oslo" / f".{base.name.split('_')[0]}_20261121093000000.log.1_0-1-0",
        "an instant": next((root / ".hoodie" / "timeline").glob("*_*.commit")),
        "a partition metafile": next((root / "oslo").glob(".hoodie_partition_metadata*")),
        "a file that is gone": base,
    }[kind]
    file.unlink(missing_ok=True)
    elsewhere = tmp_path / "elsewhere"
    if kind != "a file that is gone":
        elsewhere.write_bytes(b"x")
    file.symlink_to(elsewhere)

    with pytest.raises(
        Unsupported, match=rf"{re.escape(file.name)}: .* found a link; .* this one has the name of a table's file"
    ):
        HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"}).scan().to_arrow()


def test_links_that_hide_nothing_are_passed_over(table: HudiTable, tmp_path: Path) -> None:
    """Those that lead nowhere, one that leads back, and, where no folders are asked for, one to a folder."""
    root = Path(table.path)
    (root / "nowhere").symlink_to(tmp_path / "nothing")
    (root / "itself").symlink_to(root / "itself")
    (root / "below a file").symlink_to(root / ".hoodie" / "hoodie.properties" / "nothing")
    (root / "oslo" / "back").symlink_to(root)
    (root / ".hoodie" / "beside").symlink_to(tmp_path)

    unlisted = HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"})
    assert unlisted.scan().to_arrow().num_rows == 2
    assert unlisted.upsert(rows("c")).inserted == 1


@pytest.mark.parametrize("with_metadata_table", ["true", "false"])
def test_links_to_what_is_none_of_a_tables_files_are_passed_over(
    table: HudiTable, tmp_path: Path, with_metadata_table: str
) -> None:
    """As by Apache Hudi. A folder's links may lead in a circle, or back to the table."""
    root, outside = Path(table.path), tmp_path / "outside"
    (outside / "hooks").mkdir(parents=True)
    (outside / "hooks" / "post.sh").write_text("true")
    (outside / "hooks" / "up").symlink_to(outside)
    (outside / "hooks" / "itself").symlink_to(outside / "hooks" / "itself")
    (outside / "table").symlink_to(root)
    for link in (
        "README",
        "oslo/README",
        "oslo/_SUCCESS",
        "oslo/.x.parquet.crc",
        ".hoodie/note",
        ".hoodie/timeline/note",
    ):
        (root / link).symlink_to(outside / "hooks" / "post.sh")
    for link in ("scripts", ".git", "oslo/more", ".hoodie/timeline/more"):
        (root / link).symlink_to(outside)

    opened = HudiTable.open(root, options={"hoodie.metadata.enable": with_metadata_table})
    assert opened.scan().to_arrow().num_rows == 2
    assert opened.upsert(rows("c")).inserted == 1
    opened.savepoint()
    opened.metadata.create()
    assert opened.metadata.validate().is_valid
    assert (outside / "hooks" / "post.sh").read_text() == "true"


@pytest.mark.parametrize(
    "held", [".hoodie_partition_metadata", ".hoodie_partition_metadata.parquet", ".f-0_20261121093000000.log.1_0-1-0"]
)
def test_a_linked_folder_is_refused_for_what_lies_deep_in_it(table: HudiTable, tmp_path: Path, held: str) -> None:
    deep = tmp_path / "outside" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / held).write_bytes(b"x")
    (deep / "c").symlink_to(tmp_path / "beside")
    (Path(table.path) / "year").symlink_to(tmp_path / "outside")

    with pytest.raises(Unsupported, match=re.escape(f"behind it 'year/a/b/c/{held}' has the name of a table's file")):
        HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"}).scan().to_arrow()


def test_a_linked_folder_too_large_to_look_through_is_refused(
    table: HudiTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "ENTRIES_MAX", 3)
    outside = tmp_path / "outside"
    outside.mkdir()
    (Path(table.path) / "large").symlink_to(outside)
    unlisted = HudiTable.open(table.path, options={"hoodie.metadata.enable": "false"})

    (outside / "1").touch()
    assert unlisted.scan().to_arrow().num_rows == 2
    for name in ("2", "3"):
        (outside / name).touch()
    assert unlisted.scan().to_arrow().num_rows == 2
    (outside / "4").touch()
    with pytest.raises(Unsupported, match=r"large: .* and more than 3 files and folders lie behind it"):
        unlisted.scan().to_arrow()


def test_a_linked_folder_that_cannot_be_looked_through_is_refused(
    table: HudiTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "outside" / "closed"
    closed.mkdir(parents=True)
    (Path(table.path) / "link").symlink_to(tmp_path / "outside")
    scandir = os.scandir

    def refuse(folder: Any) -> Any:
        if folder == f"{table.path}/link/closed":
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)  # for root may look into every folder
    with pytest.raises(Unsupported, match=r"link: .* behind it 'link/closed' cannot be looked into: Permission denied"):
        list(LocalStorage(table.path).list_folders(""))


def test_loops_and_pipes_are_no_part_of_a_listing(table: HudiTable) -> None:
    folder = Path(table.path) / "oslo"
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    storage = LocalStorage(table.path)

    assert {file.path.rpartition("/")[2] for file in storage.list("", recursive=True)}.isdisjoint({"loop", "pipe"})
    assert table.scan().to_arrow().num_rows == 2
    with pytest.raises(Unsupported, match="a device, pipe or socket"):
        storage.get("oslo/pipe")


def test_a_folder_goes_without_what_its_links_lead_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    storage = LocalStorage(str(tmp_path / "t"))
    storage.put("p/q/file", b"x")
    (tmp_path / "t" / "p" / "link").symlink_to(outside)

    storage.delete_prefix("p")

    assert (outside / "kept").exists()
    assert list((tmp_path / "t").iterdir()) == []


def test_the_root_may_be_a_link(table: HudiTable, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(table.path)

    linked = HudiTable.open(link)
    linked.upsert(rows("c"))

    assert linked.scan().to_arrow().num_rows == 3


def test_folders_may_be_deeper_than_python_recurses(tmp_path: Path) -> None:
    """With a limit of recursion that is lower here, for deep folders take long to make."""
    path = tmp_path
    for _ in range(150):
        path /= "d"
        path.mkdir()
    (path / "file").write_bytes(b"x")
    storage = LocalStorage(str(tmp_path))

    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        assert len(list(storage.list("", recursive=True))) == 1
        storage.delete_prefix("d")
    finally:
        sys.setrecursionlimit(usual)

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", ["/".join(["d"] * 1_000), "x" * 256, "/".join(["x" * 200] * 5)])
def test_a_row_cannot_make_a_partition_that_nobody_can_delete(table: HudiTable, value: str) -> None:
    before = sorted(str(path) for path in Path(table.path).rglob("*"))

    with pytest.raises(HudiError, match="expected at most 100 folders"):
        table.upsert(pa.table({"id": ["z"], "city": [value], "ts": [1]}))

    assert sorted(str(path) for path in Path(table.path).rglob("*")) == before
    assert table.upsert(rows("c")).inserted == 1


def test_a_partition_that_no_folder_can_be_is_refused_before_anything_is_written(table: HudiTable) -> None:
    before = sorted(str(path) for path in Path(table.path).rglob("*"))

    with pytest.raises(HudiError, match="found one with NUL"):
        table.upsert(pa.table({"id": ["z"], "city": ["a\0b"], "ts": [1]}))

    assert sorted(str(path) for path in Path(table.path).rglob("*")) == before


def test_plans_delete_data_files_only(table: HudiTable, caplog: pytest.LogCaptureFixture) -> None:
    storage = LocalStorage(table.path)
    mine = ("oslo/notes.txt", "oslo/my_notes_2024.txt")
    for path in mine:
        storage.put(path, b"mine")
    plan = RollbackPlan(
        InstantInfo("20261121093000000", "commit"),
        (
            RollbackRequest(".hoodie", files_to_be_deleted=("/x/.hoodie/hoodie.properties",)),
            RollbackRequest("oslo", files_to_be_deleted=tuple(f"/x/{path}" for path in mine)),
        ),
    )

    delete_files(storage, plan)

    assert storage.head(".hoodie/hoodie.properties") is not None
    assert [storage.get(path) for path in mine] == [b"mine", b"mine"]
    assert "is no data file: it stays" in caplog.text


def test_a_marker_of_the_properties_deletes_nothing(table: HudiTable) -> None:
    """A writer that died left markers; one was put beside them."""
    storage = LocalStorage(table.path)
    requested = "20261121093000000"
    storage.put(f".hoodie/timeline/{requested}.commit.requested", b"")
    storage.put(f".hoodie/.heartbeat/{requested}", b"pyhudi")
    storage.put(f".hoodie/.temp/{requested}/.hoodie/hoodie.properties.marker.CREATE", b"")

    table.upsert(rows("c"))

    assert HudiTable.open(table.path).scan().to_arrow().num_rows == 3
