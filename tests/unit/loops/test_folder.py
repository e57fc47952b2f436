"""A file that somebody else put into the folder of compiled loops could run with this user's rights.

Folders are made under a home of the test; where it runs as root, some of them are given to another user.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from pyhudi.loops.folder import VARIABLE, find_folder

VERSION = "numba-1-cpython"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and a folder for temporary files that is like the system's, open to all."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir(mode=0o755)
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return home


def temporary_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"pyhudi-{os.geteuid()}"


def test_the_folder_is_below_the_home_and_for_this_user_alone(home: Path) -> None:
    folder, refused = find_folder(VERSION)
    assert (folder, refused) == (home / ".cache" / "pyhudi" / VERSION, [])
    assert folder is not None
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert find_folder(VERSION) == (folder, [])


def test_the_user_names_another_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert find_folder(VERSION)[0] == tmp_path / "shared" / "pyhudi" / VERSION
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    assert find_folder(VERSION)[0] == tmp_path / "named" / VERSION


def test_a_home_that_does_not_exist_and_cannot_be_made_gives_a_temporary_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_bytes(b"")
    monkeypatch.setenv("HOME", str(home / "file" / "below"))
    folder, refused = find_folder(VERSION)
    assert folder == temporary_folder() / VERSION
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert len(refused) == 1
    assert str(home / "file") in refused[0]


@pytest.mark.parametrize("mode", [0o770, 0o707])
@pytest.mark.parametrize("where", ["", ".cache", ".cache/pyhudi", f".cache/pyhudi/{VERSION}"])
def test_a_folder_that_others_can_write_is_refused_at_every_level(home: Path, where: str, mode: int) -> None:
    find_folder(VERSION)
    (home / where).chmod(mode)
    folder, refused = find_folder(VERSION)
    assert folder == temporary_folder() / VERSION
    assert refused == [f"{home / where} can be written by others (mode {mode:o})"]


@needs_root
@pytest.mark.parametrize("where", ["", ".cache", ".cache/pyhudi", f".cache/pyhudi/{VERSION}"])
def test_a_folder_of_another_user_is_refused_at_every_level(home: Path, where: str) -> None:
    find_folder(VERSION)
    os.chown(home / where, 12345, 12345)
    assert find_folder(VERSION) == (
        temporary_folder() / VERSION,
        [f"{home / where} belongs to user 12345"],
    )


@needs_root
def test_a_file_of_another_user_in_the_folder_is_refused(home: Path) -> None:
    folder, _ = find_folder(VERSION)
    assert folder is not None
    planted = folder / "loop.nbi"
    planted.write_bytes(b"")
    os.chown(planted, 12345, 12345)
    assert find_folder(VERSION)[1] == [f"{planted} belongs to user 12345"]


@pytest.mark.parametrize("where", [".cache/pyhudi", f".cache/pyhudi/{VERSION}", f".cache/pyhudi/{VERSION}/loop.nbi"])
def test_links_are_refused(home: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / where).parent.mkdir(parents=True)
    (home / where).symlink_to(tmp_path / "elsewhere")
    folder, refused = find_folder(VERSION)
    assert folder == temporary_folder() / VERSION
    assert len(refused) == 1
    assert "link" in refused[0]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@needs_root
def test_where_the_temporary_folder_is_taken_by_another_user_there_is_none(home: Path) -> None:
    home.chmod(0o777)
    temporary_folder().mkdir()
    os.chown(temporary_folder(), 12345, 12345)
    folder, refused = find_folder(VERSION)
    assert folder is None
    assert len(refused) == 2


def test_a_temporary_folder_that_all_may_empty_is_refused(home: Path) -> None:
    home.chmod(0o777)
    temporary_folder().parent.chmod(0o777)
    assert find_folder(VERSION)[0] is None


@needs_root
def test_a_folder_that_root_made_serves_other_users(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = find_folder(VERSION)
    assert folder is not None
    (folder / "loop.nbi").write_bytes(b"made with the image")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert find_folder(VERSION) == (folder, [])
    (folder / "loop.nbi").unlink()
    assert find_folder(VERSION)[0] != folder


def test_a_link_above_is_followed_once(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "way").symlink_to(home)
    monkeypatch.setenv("HOME", str(tmp_path / "way"))
    assert find_folder(VERSION)[0] == home / ".cache" / "pyhudi" / VERSION


def test_a_file_that_another_process_renames_meanwhile_is_no_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = find_folder(VERSION)
    assert folder is not None
    (folder / "loop.nbi.tmp.1").write_bytes(b"")
    listed = os.scandir

    def listed_late(path: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        with listed(path) as entries:
            found = list(entries)
        (folder / "loop.nbi.tmp.1").unlink(missing_ok=True)
        return nullcontext(iter(found))

    monkeypatch.setattr(os, "scandir", listed_late)
    assert find_folder(VERSION) == (folder, [])
