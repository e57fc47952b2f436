"""Two writers could both believe that they are alone, or a dead one could keep everybody out.

Writers are handles, threads and real processes; processes are killed and forked, since the lock of the
operating system is what this is about.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyhudi.errors import Conflict, Unavailable
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.open import parse_location
from pyhudi.storage.protocol import StorageLocation
from pyhudi.txn.locks import guard as guard_module
from pyhudi.txn.locks.guard import GUARD_FILE, Guard, LocalGuard, MemoryGuard
from pyhudi.txn.locks.guard import open_guard as open_any_guard
from pyhudi.txn.locks.hold import Holder
from tests.support.model import StepClock, seeded_uuids

SOURCE_DIR = Path(guard_module.__file__).parents[3]
NOW = "2026-01-01T00:00:00Z"

HOLD = """
import sys
from pyhudi.txn.locks.guard import LocalGuard
with LocalGuard(sys.argv[1]).acquire("compact", "2026-01-01T00:00:00Z"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["local", "memory"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StorageLocation:
    if request.param == "memory":
        return MemoryStorage().location
    return parse_location(tmp_path / "a table")


def open_guard(location: StorageLocation) -> Guard:
    return open_any_guard(location, clock=StepClock(), new_uuid=seeded_uuids(1))


def is_free(guard: Guard) -> bool:
    try:
        with guard.acquire("look", NOW):
            return True
    except Conflict:
        return False


@contextmanager
def other_process(root: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the guard until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE_DIR)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_handle_conflicts_and_learns_who_holds_it(location: StorageLocation) -> None:
    text = rf"process {os.getpid()} on .+ \(upsert, since {NOW}\), which is this process: another of its threads"

    with open_guard(location).acquire("upsert", NOW):
        with pytest.raises(Conflict, match=text):
            open_guard(location).acquire("clean", NOW).__enter__()
        assert not is_free(open_guard(location))
    assert is_free(open_guard(location))


def test_it_is_not_reentrant(location: StorageLocation) -> None:
    guard = open_guard(location)

    with guard.acquire("upsert", NOW), pytest.raises(Conflict), guard.acquire("clean", NOW):
        pass


def test_a_thread_conflicts(location: StorageLocation) -> None:
    seen: list[bool] = []

    with open_guard(location).acquire("upsert", NOW):
        thread = threading.Thread(target=lambda: seen.append(is_free(open_guard(location))))
        thread.start()
        thread.join()

    assert seen == [False]


def test_of_many_threads_one_holds_it_at_a_time(location: StorageLocation) -> None:
    holders = 0
    most = 0
    acquired = 0

    def write() -> None:
        nonlocal holders, most, acquired
        for _ in range(50):
            try:
                with open_guard(location).acquire("upsert", NOW):
                    holders += 1
                    most = max(most, holders)
                    acquired += 1
                    holders -= 1
            except Conflict:
                continue

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1
    assert acquired >= 50 // 4


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_gives_it_back(location: StorageLocation, error: type[BaseException]) -> None:
    with pytest.raises(error), open_guard(location).acquire("upsert", NOW):
        raise error

    assert is_free(open_guard(location))


def test_tables_do_not_guard_each_other(tmp_path: Path) -> None:
    with (
        LocalGuard(str(tmp_path / "a")).acquire("upsert", NOW),
        LocalGuard(str(tmp_path / "b")).acquire("upsert", NOW),
        MemoryGuard("a").acquire("upsert", NOW),
        MemoryGuard("b").acquire("upsert", NOW),
    ):
        pass


def test_another_name_of_the_folder_is_the_same_table(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")

    with LocalGuard(str(tmp_path / "a")).acquire("upsert", NOW):
        assert not is_free(LocalGuard(str(tmp_path / "link")))


def test_another_process_conflicts_by_name_until_it_ends(tmp_path: Path) -> None:
    guard = LocalGuard(str(tmp_path))
    with other_process(tmp_path) as process:
        with pytest.raises(Conflict, match=rf"process {process.pid} on .+ \(compact, since {NOW}\);"):
            guard.acquire("upsert", NOW).__enter__()

        process.communicate("", timeout=60)
        assert process.returncode == 0
        assert is_free(guard)


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    guard = LocalGuard(str(tmp_path))
    with other_process(tmp_path) as process:
        assert not is_free(guard)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)

        assert json.loads((tmp_path / GUARD_FILE).read_text())["pid"] == process.pid
        assert is_free(guard)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_neither_holds_nor_frees_it(location: StorageLocation) -> None:
    guard = open_guard(location)
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    held = guard.acquire("upsert", NOW)
    held.__enter__()
    child = os.fork()
    if child == 0:
        os.close(from_parent)
        held.__exit__(None, None, None)
        os.write(from_child, b"1")
        os.read(to_child, 1)  # lives on until the parent closes its end
        os._exit(0)
    assert os.read(to_parent, 1) == b"1"

    assert not is_free(guard)
    held.__exit__(None, None, None)
    assert is_free(guard)
    for descriptor in (from_parent, to_child, to_parent, from_child):
        os.close(descriptor)
    os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_outlives_a_killed_holder_without_its_lock(tmp_path: Path) -> None:
    """Its copy of the file is closed when `fork` returns in it: so the child says that the lock is held, not before."""
    say = 'print("held", flush=True)'
    hold_and_fork = HOLD.replace(
        say, f"import os, time\n    if os.fork() == 0:\n        {say}\n        time.sleep(20)\n        os._exit(0)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", hold_and_fork, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE_DIR)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert not is_free(LocalGuard(str(tmp_path)))
        process.kill()
        process.wait(timeout=60)

        assert is_free(LocalGuard(str(tmp_path)))
        os.killpg(process.pid, signal.SIGKILL)  # the child, in the session that we made for it


def test_the_file_stays_and_is_empty_when_free(tmp_path: Path) -> None:
    with LocalGuard(str(tmp_path)).acquire("upsert", NOW):
        text = json.loads((tmp_path / GUARD_FILE).read_text())
    assert (text["pid"], text["purpose"], text["since"]) == (os.getpid(), "upsert", NOW)
    assert (tmp_path / GUARD_FILE).read_bytes() == b""


def test_a_guard_file_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    assert is_free(LocalGuard(str(tmp_path)))
    (tmp_path / GUARD_FILE).unlink()

    with LocalGuard(str(tmp_path)).acquire("upsert", NOW):
        assert (tmp_path / GUARD_FILE).exists()


def test_where_files_cannot_be_locked_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").write_text("a file where the folder should be")

    with pytest.raises(Unavailable, match="cannot lock it"):
        LocalGuard(str(tmp_path)).acquire("upsert", NOW).__enter__()
    with pytest.raises(Unavailable):  # and not Conflict: the lock within the process was given back
        LocalGuard(str(tmp_path)).acquire("upsert", NOW).__enter__()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'{"pid": "x"}', b'{"pid": 1}', b"\xff"])
def test_a_text_of_no_one_is_no_holder(text: bytes) -> None:
    assert Holder.decode(text) is None


def test_a_holder_is_read_back() -> None:
    holder = Holder(7, "höst", "upsert", NOW)

    assert Holder.decode(holder.encode()) == holder


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes")
@pytest.mark.parametrize("folder, file", [(0o755, 0o600), (0o775, 0o660), (0o700, 0o600), (0o777, 0o666)])
def test_only_those_who_may_write_the_folder_can_open_the_guard_and_lock_it(
    tmp_path: Path, folder: int, file: int
) -> None:
    """Who can read a file can lock it. An old guard, which all could read, is closed by its owner."""
    root = tmp_path / "t"
    guard = root / ".hoodie/.pyhudi_guard"
    guard.parent.mkdir(parents=True)
    guard.parent.chmod(folder)
    for before in (None, 0o644):
        if before is not None:
            guard.chmod(before)
        with LocalGuard(str(root)).acquire("a write", "now"):
            assert guard.stat().st_mode & 0o777 == file
