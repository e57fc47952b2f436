"""A lock's file could be deleted under its holder, stay for ever after its holder's death, or be taken by two."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyhudi.errors import Conflict, LockLost, Unsupported
from pyhudi.storage.lock_files import take_away
from tests.support.lock_holders import LOCKS, PREFIX, a_guard, a_provider, held_elsewhere

NOW = "20260101000000000"
OPTIONS = {f"{PREFIX}provider": f"{LOCKS}.FileSystemBasedLockProvider"}
EXPIRES = OPTIONS | {f"{PREFIX}filesystem.expire": "1"}
OF_HUDI = b""
"""Apache Hudi 1.x leaves its lock's file empty."""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    (tmp_path / ".hoodie").mkdir()
    return tmp_path / ".hoodie" / "lock"


def age(lock: Path, by_s: int) -> None:
    then = lock.stat().st_mtime - by_s
    os.utime(lock, (then, then))


def test_the_file_lies_where_apache_hudi_looks_for_it(tmp_path: Path, lock: Path) -> None:
    with a_guard(OPTIONS, str(tmp_path)).acquire("an upsert", NOW) as hold:
        hold.confirm()
        fields = json.loads(lock.read_bytes())
        assert fields["lockCreateTime"] == NOW
        assert f"process {os.getpid()} on" in fields["lockThreadName"]
        assert not lock.with_name(".lock.crc").exists()
    assert [path.name for path in lock.parent.iterdir()] == [".pyhudi_guard"]


def test_a_lock_of_apache_hudi_is_heeded(tmp_path: Path, lock: Path) -> None:
    lock.write_bytes(OF_HUDI)
    age(lock, by_s=1_000_000)
    with pytest.raises(Conflict, match="never by itself"), a_guard(OPTIONS, str(tmp_path)).acquire("a write", NOW):
        pytest.fail("both hold the lock")
    assert lock.read_bytes() == OF_HUDI


def test_a_lock_of_apache_hudi_expires(tmp_path: Path, lock: Path) -> None:
    lock.write_bytes(OF_HUDI)
    lock.with_name(".lock.crc").write_bytes(b"crc")
    age(lock, by_s=58)
    with pytest.raises(Conflict), a_guard(EXPIRES, str(tmp_path)).acquire("a write", NOW):
        pytest.fail("both hold the lock")

    age(lock, by_s=3)
    with a_guard(EXPIRES, str(tmp_path)).acquire("a write", NOW) as hold:
        hold.confirm()


def test_a_pyhudi_writer_of_the_table_that_died_blocks_no_other(tmp_path: Path, lock: Path) -> None:
    """Without expiry. Whoever asks holds the table's own guard, so the holder of the file is dead."""
    with held_elsewhere(OPTIONS, str(tmp_path)) as holder:
        holder.kill()
    assert lock.exists()
    with a_guard(OPTIONS, str(tmp_path)).acquire("a write", NOW) as hold:
        hold.confirm()
    assert not lock.exists()


def test_a_lock_that_another_writer_took_or_emptied_is_lost(tmp_path: Path, lock: Path) -> None:
    for theirs in (OF_HUDI, b"theirs"):
        with a_guard(OPTIONS, str(tmp_path)).acquire("a write", NOW) as hold:
            lock.write_bytes(theirs)
            with pytest.raises(LockLost, match="held by"):
                hold.confirm()
        assert lock.read_bytes() == theirs  # no lock of ours any more, so it stays
        lock.unlink()


def test_a_lock_that_was_not_renewed_in_time_is_lost(tmp_path: Path, lock: Path) -> None:
    with a_guard(EXPIRES, str(tmp_path)).acquire("a write", NOW) as hold:
        age(lock, by_s=30)
        hold.confirm()
        assert lock.stat().st_mtime > lock.stat().st_ctime - 5
        age(lock, by_s=61)
        with pytest.raises(LockLost, match="not renewed in time"):
            hold.confirm()


def test_taking_away_leaves_a_file_that_came_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, aside = tmp_path / "lock", tmp_path / "aside"
    file.write_bytes(b"old")
    rename = os.rename

    def rename_another(*paths: str) -> None:
        file.write_bytes(b"new")
        rename(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename_another)
        assert not take_away(str(file), str(aside), lambda found: found == b"old")
    assert file.read_bytes() == b"new"
    assert take_away(str(file), str(aside), lambda found: found == b"new")
    assert not take_away(str(file), str(aside), lambda found: True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_is_not_moved_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apache Hudi takes the lock only if its file is still there when it has made it. Else the file stays for ever."""
    file = tmp_path / "lock"
    file.write_bytes(OF_HUDI)
    monkeypatch.setattr(os, "rename", lambda *paths: pytest.fail("the file was moved"))

    assert not take_away(str(file), str(tmp_path / "aside"), lambda found: found == b"ours")


def test_the_checksum_of_a_file_that_another_makes_meanwhile_stays(
    tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or Apache Hudi fails while it makes the lock's file, and the file stays for ever."""
    checksum, link, rename = lock.with_name(".lock.crc"), os.link, os.rename

    def taken_by_hudi() -> None:
        lock.write_bytes(OF_HUDI)
        checksum.write_bytes(b"crc")

    def link_too_late(*paths: str) -> None:
        taken_by_hudi()
        link(*paths)

    def rename_and_be_overtaken(*paths: str) -> None:
        rename(*paths)
        taken_by_hudi()

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link_too_late)
        with pytest.raises(Conflict), a_guard(OPTIONS, str(tmp_path)).acquire("a write", NOW):
            pytest.fail("both hold the lock")
    assert (lock.read_bytes(), checksum.read_bytes()) == (OF_HUDI, b"crc")

    lock.unlink()
    checksum.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename_and_be_overtaken)
        with a_guard(OPTIONS, str(tmp_path)).acquire("a write", NOW):
            pass
    assert (lock.read_bytes(), checksum.read_bytes()) == (OF_HUDI, b"crc")


def test_one_of_many_takes_the_lock(tmp_path: Path, lock: Path) -> None:
    start, holders = threading.Barrier(8), list[int]()
    options = OPTIONS | {f"{PREFIX}filesystem.path": str(lock.parent)}
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(_race, options, start, holders, tmp_path, number) for number in range(8)]:
            done.result()


def _race(options: dict[str, str], start: threading.Barrier, holders: list[int], folder: Path, number: int) -> None:
    provider = a_provider(options, str(folder / f"other {number}"))
    start.wait()
    with provider.hold("a race", NOW, wait_ms=20_000) as hold:
        holders.append(number)
        assert len(holders) == 1
        hold.confirm()
        holders.remove(number)


def test_a_forked_child_leaves_the_lock_alone(tmp_path: Path, lock: Path) -> None:
    code = f"""
import os
from tests.support.lock_holders import a_guard
with a_guard({EXPIRES!r}, {str(tmp_path)!r}).acquire("a write", "20260101000000000") as hold:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        hold.confirm()
        print("confirmed")
if not child:
    os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[5] / "src"),
                                                          str(Path(__file__).parents[5])))},
    )  # fmt: skip
    assert done.stdout == "confirmed\n", done.stderr
    assert not lock.exists()


@pytest.mark.parametrize("path", ["s3://bucket/locks", "hdfs://host/locks", "memory://locks"])
def test_only_local_folders_hold_a_lock(path: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="expected a local folder"):
        a_guard(OPTIONS | {f"{PREFIX}filesystem.path": path}, str(tmp_path))
