"""Folders for rows that are put aside could pile up after crashes, or be swept while a process still needs them.

Processes are real ones: they are killed, and live on, while another one sweeps.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyhudi.errors import Invalid
from pyhudi.storage import scratch
from pyhudi.storage.scratch import LOCK_FILE, ScratchFolder, sweep_once, sweep_scratch

PREFIX = "pyhudi-staged-"
SETTING = "the.place"
HOLD = """
import sys, time
from pyhudi.storage.scratch import ScratchFolder
folder = ScratchFolder.make("pyhudi-staged-", sys.argv[1], setting="place")
(folder.path / "rows").write_bytes(b"rows")
print(folder.path, flush=True)
time.sleep(60)
"""
posix = pytest.mark.skipif(os.name == "nt", reason="links and owners as POSIX has them")


@contextmanager
def holder(place: Path, program: str = HOLD) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that holds a folder, and the folder."""
    process = subprocess.Popen([sys.executable, "-c", program, str(place)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def names(place: Path) -> list[str]:
    return sorted(entry.name for entry in place.iterdir())


def test_a_folder_is_private_and_goes_when_it_is_discarded(tmp_path: Path) -> None:
    folder = ScratchFolder.make(PREFIX, str(tmp_path), setting=SETTING)
    (folder.path / "rows").write_bytes(b"rows")

    assert folder.path.parent == tmp_path
    assert os.name == "nt" or folder.path.stat().st_mode & 0o777 == 0o700
    folder.discard()
    folder.discard()
    assert names(tmp_path) == []


def test_the_folder_of_a_living_process_is_left_alone_and_that_of_a_killed_one_swept(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, path):
        sweep_scratch(str(tmp_path))
        assert (path / "rows").read_bytes() == b"rows"

        process.send_signal(signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
        process.wait()
        assert path.exists()
        other = ScratchFolder.make(PREFIX, str(tmp_path), setting=SETTING)

    assert names(tmp_path) == [other.path.name]
    other.discard()


def test_a_folder_of_this_process_is_left_alone(tmp_path: Path) -> None:
    first, second = (ScratchFolder.make(prefix, str(tmp_path), setting=SETTING) for prefix in scratch.PREFIXES)

    sweep_scratch(str(tmp_path))

    assert len(names(tmp_path)) == 2
    first.discard()
    second.discard()


def dead_folder(place: Path, name: str = "pyhudi-staged-dead") -> Path:
    """A folder whose lock nobody holds."""
    folder = place / name
    folder.mkdir()
    (folder / LOCK_FILE).touch()
    return folder


@posix
def test_links_are_not_followed(tmp_path: Path) -> None:
    place, kept = tmp_path / "place", tmp_path / "kept"
    place.mkdir()
    kept.mkdir()
    dead_folder(kept, "pyhudi-staged-elsewhere")
    (kept / "file").write_bytes(b"kept")
    (place / "pyhudi-staged-link").symlink_to(kept / "pyhudi-staged-elsewhere")
    (dead_folder(place) / "link").symlink_to(kept)
    locked_by_link = place / "pyhudi-staged-lock-is-a-link"
    locked_by_link.mkdir()
    (locked_by_link / LOCK_FILE).symlink_to(kept / "file")

    sweep_scratch(str(place))

    assert names(place) == ["pyhudi-staged-link", "pyhudi-staged-lock-is-a-link"]
    assert names(kept) == ["file", "pyhudi-staged-elsewhere"]
    assert (kept / "file").read_bytes() == b"kept"


@posix
def test_what_another_user_owns_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = dead_folder(tmp_path)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)

    sweep_scratch(str(tmp_path))
    assert dead.exists()

    monkeypatch.undo()
    sweep_scratch(str(tmp_path))
    assert not dead.exists()


def test_other_names_and_files_are_left_alone(tmp_path: Path) -> None:
    dead_folder(tmp_path, "staged")
    (tmp_path / "pyhudi-staged-file").touch()

    sweep_scratch(str(tmp_path))

    assert names(tmp_path) == ["pyhudi-staged-file", "staged"]


def test_a_folder_without_a_lock_is_left_alone_for_a_day(tmp_path: Path) -> None:
    """Its process may be about to lock it, or be of an earlier release."""
    new, old = tmp_path / "pyhudi-staged-new", tmp_path / "pyhudi-rows-old"
    new.mkdir()
    old.mkdir()
    long_ago = time.time() - 2 * 86_400
    os.utime(old, (long_ago, long_ago))

    sweep_scratch(str(tmp_path))

    assert names(tmp_path) == ["pyhudi-staged-new"]


def test_a_folder_that_a_sweeper_took_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def lock_after_sweeper(descriptor: int) -> bool:
        if not taken:
            (folder,) = tmp_path.glob(f"{PREFIX}*")
            taken.append(folder)
            (folder / LOCK_FILE).unlink()
            folder.rmdir()
        return True

    monkeypatch.setattr(scratch, "try_lock", lock_after_sweeper)
    folder = ScratchFolder.make(PREFIX, str(tmp_path), setting=SETTING)

    assert taken != [folder.path]
    assert names(tmp_path) == [folder.path.name]


def test_a_process_sweeps_a_place_once_unless_it_makes_a_folder(tmp_path: Path) -> None:
    dead_folder(tmp_path)
    sweep_once(str(tmp_path), setting=SETTING)
    assert names(tmp_path) == []

    dead_folder(tmp_path)
    sweep_once(str(tmp_path), setting=SETTING)
    assert names(tmp_path) == ["pyhudi-staged-dead"]

    ScratchFolder.make(PREFIX, str(tmp_path), setting=SETTING).discard()
    assert names(tmp_path) == []


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"'the.place'='.*nowhere': expected a folder"):
        ScratchFolder.make(PREFIX, str(tmp_path / "nowhere"), setting=SETTING)


def test_a_system_without_temporary_files_is_told_when_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", none)

    sweep_once(setting=SETTING)
    with pytest.raises(Invalid, match=r"none for temporary files \(No usable .*name one \('the.place', or .*TMPDIR"):
        ScratchFolder.make(PREFIX, setting=SETTING)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_neither_deletes_a_folder_nor_keeps_it_alive(tmp_path: Path) -> None:
    fork = HOLD.replace(
        "print(",
        "import os\nif os.fork() == 0:\n    folder.discard()\n    print(folder.path, flush=True)\n"
        "    time.sleep(5)\n    os._exit(0)\nif False: print(",
    )
    with holder(tmp_path, fork) as (process, path):  # the child says so
        assert (path / "rows").exists()
        sweep_scratch(str(tmp_path))
        assert (path / "rows").exists()

        process.kill()
        process.wait()
        sweep_scratch(str(tmp_path))
        assert not path.exists()
