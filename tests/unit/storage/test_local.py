"""A crash, a full disk or Hadoop beside us could leave a local file torn, unreadable or wrongly listed.

Failures of the system are put in by replacing calls of `os`; what is on the disk is looked at directly.
"""

import errno
import os
import pickle
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import Invalid, Unavailable
from pyhudi.storage import local_files
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.local_files import TEMPORARY_PREFIX
from pyhudi.storage.protocol import set_modified


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def failing(number: int):
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def checksum_of(folder: Path, name: str) -> Path:
    """A checksum such as Hadoop leaves it beside a file that it wrote."""
    path = folder / f".{name}.crc"
    path.write_bytes(b"crc\x00 of the old content")
    return path


def test_changes_leave_nothing_beside_the_file(storage: LocalStorage, tmp_path: Path) -> None:
    storage.put("a", b"1")
    storage.put_new("b", b"2")
    storage.put_new("b", b"3")
    with storage.put_stream("c") as stream:
        stream.write(b"4")

    assert names(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize("call", ["link", "replace", "fsync", "write"])
def test_a_failing_system_call_leaves_the_old_content(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    storage.put("old", b"old")
    monkeypatch.setattr(os, call, failing(errno.ENOSPC))

    if call != "replace":
        with pytest.raises(Unavailable, match=r"new: cannot create it: No space left on device"):
            storage.put_new("new", b"new")
    if call != "link":
        with pytest.raises(Unavailable, match=r"old: cannot write it: No space left on device"):
            storage.put("old", b"new")
    if call in ("fsync", "replace"):
        with pytest.raises(Unavailable), storage.put_stream("old") as stream:
            stream.write(b"new")

    monkeypatch.undo()
    assert names(tmp_path) == ["old"]
    assert storage.get("old") == b"old"


def test_a_stream_that_cannot_be_written_is_unavailable(storage: LocalStorage, tmp_path: Path) -> None:
    def fill_the_disk() -> None:
        with storage.put_stream("file") as stream:
            stream.write(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(Unavailable, match="No space left"):
        fill_the_disk()

    assert names(tmp_path) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_put_new_works_without_hard_links(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "link", failing(number))

    assert storage.put_new("a/file", b"first") is True
    assert storage.put_new("a/file", b"second") is False
    assert names(tmp_path / "a") == ["file"]
    assert storage.get("a/file") == b"first"


def test_put_new_without_hard_links_loses_against_a_faster_writer(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(_: str, full: str) -> None:
        Path(full).write_bytes(b"faster")
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr(os, "link", link)

    assert storage.put_new("file", b"slower") is False
    assert names(tmp_path) == ["file"]
    assert storage.get("file") == b"faster"


def test_put_new_without_hard_links_takes_a_torn_file_away(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: str) -> None:
        monkeypatch.setattr(os, "fsync", failing(errno.EIO))
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr(os, "link", link)

    with pytest.raises(Unavailable):
        storage.put_new("file", b"content")
    assert names(tmp_path) == []


def test_put_new_knows_its_own_file_after_a_lost_answer(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    real_link = os.link

    def link_twice(source: str, target: str) -> None:  # an NFS client whose first answer was lost
        real_link(source, target)
        real_link(source, target)

    monkeypatch.setattr(os, "link", link_twice)

    assert storage.put_new("file", b"ours") is True


def test_replacing_or_deleting_a_file_deletes_hadoops_checksum(storage: LocalStorage, tmp_path: Path) -> None:
    """Seen: after a plain rewrite, Hadoop 3.5 reads the file with "ChecksumException: Checksum error"."""
    for name in ("put", "stream", "deleted"):
        storage.put(name, b"old")
    checksums = [checksum_of(tmp_path, name) for name in ("put", "stream", "deleted", "new", "kept")]

    storage.put("put", b"new")
    with storage.put_stream("stream") as stream:
        stream.write(b"new")
    storage.delete("deleted")
    storage.put_new("new", b"new")

    assert [path.exists() for path in checksums] == [False, False, False, False, True]


def test_listings_show_neither_checksums_nor_temporary_files(storage: LocalStorage, tmp_path: Path) -> None:
    storage.put(".a1f0_20260101.log.1_0-1-1", b"log")
    checksum_of(tmp_path, ".a1f0_20260101.log.1_0-1-1")
    (tmp_path / f"{TEMPORARY_PREFIX}1-ff").write_bytes(b"left by a crash")

    assert [file.path for file in storage.list("", recursive=True)] == [".a1f0_20260101.log.1_0-1-1"]


def test_a_file_is_dated(storage: LocalStorage) -> None:
    storage.put("folder/file", b"x")
    set_modified(storage, "folder/file", 1_700_000_000_123)
    found = storage.head("folder/file")
    assert found is not None
    assert found.modified_ms == 1_700_000_000_123
    with pytest.raises(Unavailable):
        set_modified(storage, "folder/none", 1)


def test_a_sweep_takes_the_old_temporary_files_of_a_folder(storage: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / "folder" / "below").mkdir(parents=True)
    old, young, below = (
        tmp_path / "folder" / f"{TEMPORARY_PREFIX}1-aa",
        tmp_path / "folder" / f"{TEMPORARY_PREFIX}1-bb",
        tmp_path / "folder" / "below" / f"{TEMPORARY_PREFIX}1-cc",
    )
    for path in (old, young, below):
        path.write_bytes(b"half")
    for path, at_s in ((old, 999.999), (young, 1_000.0), (below, 1.0)):
        os.utime(path, (at_s, at_s))

    assert storage.sweep("folder", written_before_ms=1_000_000) == 1
    assert [path.exists() for path in (old, young, below)] == [False, True, True]


def test_a_sweep_leaves_the_file_whose_second_name_it_takes(storage: LocalStorage, tmp_path: Path) -> None:
    """A crash between the link that names a new file and the end of its temporary name."""
    storage.put_new("file", b"x")
    os.link(tmp_path / "file", tmp_path / f"{TEMPORARY_PREFIX}1-aa")

    assert storage.sweep("", written_before_ms=1 << 50) == 1
    assert storage.get("file") == b"x"
    assert names(tmp_path) == ["file"]


def test_a_sweep_passes_over_what_is_named_meanwhile(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.put("file", b"x")
    (tmp_path / f"{TEMPORARY_PREFIX}1-aa").symlink_to(tmp_path / "nothing")
    monkeypatch.setattr(local_files, "unlink", lambda full: False)

    assert storage.sweep("", written_before_ms=1 << 50) == 0


def test_a_file_that_vanishes_while_it_is_listed_is_left_out(storage: LocalStorage, tmp_path: Path) -> None:
    storage.put("file", b"x")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")

    assert [file.path for file in storage.list("")] == ["file"]


def test_a_folder_that_cannot_be_read_is_unavailable(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "scandir", failing(errno.EACCES))

    with pytest.raises(Unavailable, match="cannot list it: Permission denied"):
        storage.list("")
    with pytest.raises(Unavailable, match="cannot list it: Permission denied"):
        storage.list_folders("")


def test_a_name_that_is_too_long_asks_for_another_call(storage: LocalStorage) -> None:
    for change in (storage.put, storage.put_new):
        with pytest.raises(Invalid, match="shorten it"):
            change("x" * 300, b"")


def test_new_files_follow_the_umask(storage: LocalStorage, tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        storage.put("folder/file", b"")
    finally:
        os.umask(umask)

    assert (tmp_path / "folder" / "file").stat().st_mode & 0o777 == 0o640


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "absent"))

    assert list(storage.list("", recursive=True)) == []
    assert list(storage.list_folders("")) == []
    storage.delete_prefix("")
    assert not (tmp_path / "absent").exists()


def test_a_storage_travels(storage: LocalStorage) -> None:
    storage.put("file", b"x")

    assert pickle.loads(pickle.dumps(storage)).get("file") == b"x"


def test_arrow_reads_an_input_as_its_own_file(storage: LocalStorage) -> None:
    table = pa.table({"a": [1, 2, 3]})
    with storage.put_stream("file.parquet") as stream:
        pq.write_table(table, stream)

    with storage.open_input("file.parquet") as file:
        assert isinstance(file, pa.NativeFile)
        assert pq.read_table(file).equals(table)


def test_a_listing_costs_microseconds_a_file(storage: LocalStorage, tmp_path: Path) -> None:
    for number in range(2_000):
        os.close(os.open(tmp_path / f"{number:05}.parquet", os.O_CREAT | os.O_WRONLY))
    seconds = []
    for _ in range(5):
        start = time.process_time()
        listed = list(storage.list(""))
        seconds.append(time.process_time() - start)

    assert len(listed) == 2_000
    assert min(seconds) / len(listed) < 20e-6, "5 microseconds on a quiet machine"
