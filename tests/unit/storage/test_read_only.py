"""pyhudi could write to a store whose driver lets two writers both create a file, or refuse one without saying why.

The races of fsspec's drivers that the reasons name are run here: where one of them ends, a reason has become wrong.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from pyhudi.errors import Unsupported
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.read_only import why_read_only
from pyhudi.txn.locks.guard import open_guard
from tests.support.model import StepClock, seeded_uuids


@pytest.mark.parametrize(
    "scheme,lacks,instead",
    [
        ("hdfs", "replaces a file that exists", "write it with Apache Hudi"),
        ("webhdfs", "overwrite=true", "write it with Apache Hudi"),
        ("sftp", "renames over a file that exists", "local disk or in an object store"),
        ("local", "looks whether a file exists and creates it then", "'file:///...'"),
        ("oss", "no lease can be held", "name it 's3://BUCKET/...'"),
        ("smb", "not known to create a file whole", "local disk or in an object store"),
    ],
)
def test_each_driver_is_refused_by_name_with_what_to_do(scheme: str, lacks: str, instead: str) -> None:
    location = parse_location(f"{scheme}://host/a/table")
    guard = open_guard(location, clock=StepClock(), new_uuid=seeded_uuids(1))

    with pytest.raises(Unsupported) as raised:
        guard.acquire("upsert", "now")

    text = str(raised.value)
    assert text.startswith(f"{scheme}://host/a/table: pyhudi reads '{scheme}' through fsspec and does not write to it")
    assert lacks in text
    assert instead in text
    assert "two writers could both commit" in text
    assert "or pass storage= and lock=" in text


def test_no_change_of_a_storage_gets_through(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    storage = open_storage(parse_location(f"local://{tmp_path}"))
    changes: tuple[Callable[[], object], ...] = (
        lambda: storage.make_folder("a"),
        lambda: storage.put_new("new", b""),
        lambda: storage.put("file", b""),
        lambda: storage.put_stream("file"),
        lambda: storage.delete("file"),
        lambda: storage.delete_prefix(""),
        lambda: storage.delete_many(["file"]),
    )
    for change in changes:
        with pytest.raises(Unsupported, match=r"cannot change it: .* write to the same folder as 'file:///\.\.\.'"):
            change()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_stores_that_pyhudi_speaks_to_itself_are_not_among_them() -> None:
    for scheme in ("s3", "gs", "az", "abfss", "file", "memory"):
        assert "is not known to" in why_read_only(scheme)


@pytest.fixture(params=["local", "memory"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    yield fsspec.filesystem(request.param), f"{tmp_path}/file" if request.param == "local" else "/races/file"
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def test_fsspecs_creation_lets_two_writers_create_one_file(
    system: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: fsspec 2026.9.0. Each looks whether the file exists before either has created it."""
    files, path = system
    if "mode" not in signature(AbstractFileSystem.pipe_file).parameters:
        pytest.skip("this fsspec has no creation of files, it replaces them")
    files.makedirs(path.rpartition("/")[0], exist_ok=True)
    both_looked = threading.Barrier(2)
    for kind in (LocalFileSystem, MemoryFileSystem):
        look = kind.exists

        def look_then_wait(self: Any, *given: Any, look: Any = look, **named: Any) -> bool:
            found = look(self, *given, **named)
            both_looked.wait(10)
            return found

        monkeypatch.setattr(kind, "exists", look_then_wait)

    def create(content: bytes) -> bool:
        try:
            files.pipe_file(path, content, mode="create")
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(create, (b"one", b"two"))) == [True, True]


def test_what_fsspec_creates_exclusively_on_disk_is_seen_before_it_is_whole(tmp_path: Path) -> None:
    files = fsspec.filesystem("local")
    with files.open(f"{tmp_path}/file", "xb") as file:
        file.write(b"all of it")
        assert (tmp_path / "file").read_bytes() == b""
    with pytest.raises(FileExistsError):
        files.open(f"{tmp_path}/file", "xb")
