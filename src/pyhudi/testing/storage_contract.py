"""The contract of every storage, as pytest tests: subclass `StorageContract` and give it a `storage` fixture.

What could go wrong: a half-written file is seen, two writers both believe that they created a file, a path
from the data reaches out of the table, a listing leaves a file out or comes in another order elsewhere.
"""

import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyhudi.errors import Invalid, NotFound
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, sweep

NAMES = (
    "plain",
    "with space",
    "100%",
    "a%20b",
    "ünï-日本",
    "=key=",
    ".hidden",
    "a:b",
    "quote'\"",
    "back\\slash",
)
BAD_PATHS = ("/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/", "./a", "a/.", "/", "nul\x00")


def paths(storage: Storage, prefix: str = "", *, recursive: bool = False) -> list[str]:
    return [file.path for file in storage.list(prefix, recursive=recursive)]


class ReadContract:
    """What every storage that can be read keeps; `put` is all that these tests change with."""

    opens_by_location = True
    """False for a storage of your own that is handed over as `storage=`: pyhudi cannot open it by its location."""

    def test_what_was_put_comes_back(self, storage: Storage) -> None:
        for content in (b"", b"x", bytes(range(256)) * 5_000):
            storage.put("a/b/file", content)
            assert storage.get("a/b/file") == content

    def test_a_range_is_cut_at_the_end_of_the_file(self, storage: Storage) -> None:
        storage.put("file", b"0123456789")

        assert storage.get("file", 3) == b"3456789"
        assert storage.get("file", 3, 5) == b"34"
        assert storage.get("file", 3, 3) == b""
        assert storage.get("file", 8, 100) == b"89"
        assert storage.get("file", 100) == b""
        assert storage.get("file", 100, 200) == b""

    @pytest.mark.parametrize("start,end", [(-1, None), (0, -1), (5, 4)])
    def test_an_impossible_range_is_our_mistake(self, storage: Storage, start: int, end: int | None) -> None:
        storage.put("file", b"0123456789")

        with pytest.raises(AssertionError):
            storage.get("file", start, end)

    def test_an_input_is_read_anywhere(self, storage: Storage) -> None:
        storage.put("file", b"0123456789")

        with storage.open_input("file") as file:
            assert file.seekable()
            assert file.read(2) == b"01"
            assert file.tell() == 2
            assert file.seek(-3, os.SEEK_END) == 7
            assert file.read() == b"789"
            assert file.read(1) == b""
            file.seek(4)
            assert file.read(2) == b"45"
            assert file.read(-1) == b"6789"
            file.seek(0)
            assert io.BufferedReader(file, 4).read(6) == b"012345"  # type: ignore[type-var]
        assert file.closed

    def test_an_input_outlives_the_context_that_gave_it(self, storage: Storage) -> None:
        storage.put("file", b"0123456789")

        file = storage.open_input("file").__enter__()

        assert file.read() == b"0123456789"
        file.close()
        assert file.closed

    def test_an_absent_file_is_not_found(self, storage: Storage) -> None:
        storage.put("folder/file", b"x")

        for absent in ("absent", "absent/file", "folder", "folder/absent", "folder/file/below"):
            with pytest.raises(NotFound, match="expected a file"):
                storage.get(absent)
            with pytest.raises(NotFound), storage.open_input(absent):
                pass
            assert storage.head(absent) is None

    def test_head_and_list_agree(self, storage: Storage) -> None:
        storage.put("folder/file", b"12345")

        info = storage.head("folder/file")

        assert info is not None
        assert (info.path, info.size_bytes) == ("folder/file", 5)
        assert info.modified_ms > 1_500_000_000_000
        assert list(storage.list("folder")) == [info]

    def test_a_folder_lists_its_own_files_only(self, storage: Storage) -> None:
        for path in ("b", "a/2", "a/1", "a/c/3", "a-b/4", "a.b", "a0/5"):
            storage.put(path, b"")

        assert paths(storage) == ["a.b", "b"]
        assert paths(storage, "a") == ["a/1", "a/2"]
        assert paths(storage, "a/c") == ["a/c/3"]
        assert paths(storage, "b") == []
        assert paths(storage, "absent") == []

    def test_a_recursive_list_is_sorted_by_whole_path(self, storage: Storage) -> None:
        for path in ("b", "a/2", "a/1", "a/c/3", "a-b/4", "a.b", "a0/5"):
            storage.put(path, b"")

        assert paths(storage, recursive=True) == ["a-b/4", "a.b", "a/1", "a/2", "a/c/3", "a0/5", "b"]
        assert paths(storage, "a", recursive=True) == ["a/1", "a/2", "a/c/3"]
        assert paths(storage, "absent", recursive=True) == []

    def test_folders_are_those_directly_below(self, storage: Storage) -> None:
        for path in ("file", "b/1", "a/c/3", "a/d/e/4", "a-b/5"):
            storage.put(path, b"")

        assert list(storage.list_folders("")) == ["a", "a-b", "b"]
        assert list(storage.list_folders("a")) == ["a/c", "a/d"]
        assert list(storage.list_folders("b")) == []
        assert list(storage.list_folders("file")) == []
        assert list(storage.list_folders("absent")) == []

    @pytest.mark.parametrize("name", NAMES)
    def test_names_are_kept_as_they_are(self, storage: Storage, name: str) -> None:
        storage.put(f"{name}/{name}", b"x")

        assert paths(storage, name) == [f"{name}/{name}"]
        assert list(storage.list_folders("")) == [name]
        assert storage.get(f"{name}/{name}") == b"x"

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_no_path_leads_out_of_the_root(self, storage: Storage, path: str) -> None:
        calls = (
            lambda: storage.get(path),
            lambda: storage.open_input(path).__enter__(),
            lambda: storage.head(path),
            lambda: storage.list(path),
            lambda: storage.list_folders(path),
            lambda: storage.put(path, b""),
            lambda: storage.put_new(path, b""),
            lambda: storage.put_stream(path).__enter__(),
            lambda: storage.delete(path),
            lambda: storage.delete_prefix(path),
            lambda: storage.delete_many([path]),
        )
        for call in calls:
            with pytest.raises(Invalid, match="relative to the table"):
                call()

    def test_the_location_opens_the_same_bytes(self, storage: Storage) -> None:
        if not self.opens_by_location:
            pytest.skip("a storage of one's own is handed over, not opened")
        storage.put("a/file", b"x")

        again = open_storage(storage.location)

        assert again.get("a/file") == b"x"
        assert again.location == storage.location


class StorageContract(ReadContract):
    """One suite for every storage that can be written too. Each test gets an empty one."""

    has_folders = True
    """False for a store of objects: `a` and `a/b` may both be files there."""

    def test_the_root_is_no_file(self, storage: Storage) -> None:
        for call in (storage.get, storage.head, storage.delete, lambda path: storage.put(path, b"")):
            with pytest.raises(Invalid):
                call("")

    def test_put_new_refuses_what_exists(self, storage: Storage) -> None:
        assert storage.put_new("a/file", b"first") is True
        assert storage.put_new("a/file", b"second") is False
        assert storage.get("a/file") == b"first"

        storage.delete("a/file")
        assert storage.put_new("a/file", b"third") is True
        assert storage.get("a/file") == b"third"

    def test_exactly_one_of_many_creates_a_file(self, storage: Storage) -> None:
        writers = 8
        start = threading.Barrier(writers)

        def create(writer: int) -> bool:
            start.wait()
            return storage.put_new("new/folder/file", b"%d" % writer * 10_000)

        with ThreadPoolExecutor(writers) as pool:
            won = list(pool.map(create, range(writers)))

        assert sum(won) == 1
        assert storage.get("new/folder/file") == b"%d" % won.index(True) * 10_000
        assert paths(storage, recursive=True) == ["new/folder/file"]

    def test_a_reader_sees_the_old_or_the_new_content(self, storage: Storage) -> None:
        whole = {b"a" * 100_000, b"b" * 200_000}
        storage.put("file", b"a" * 100_000)
        is_over = threading.Event()

        def read() -> set[bytes]:
            seen = {storage.get("file")}
            while not is_over.is_set():
                seen.add(storage.get("file"))
            return seen

        with ThreadPoolExecutor(1) as pool:
            seen = pool.submit(read)
            for content in sorted(whole) * 5:
                storage.put("file", content)
            is_over.set()
        assert seen.result() <= whole

    def test_a_stream_becomes_visible_at_its_end(self, storage: Storage) -> None:
        with storage.put_stream("folder/file") as stream:
            stream.write(b"first, ")
            assert storage.head("folder/file") is None
            assert paths(storage, recursive=True) == []
            stream.write(b"second")

        assert storage.get("folder/file") == b"first, second"
        assert paths(storage, recursive=True) == ["folder/file"]

    def test_a_stream_replaces_a_file(self, storage: Storage) -> None:
        storage.put("file", b"old")

        with storage.put_stream("file") as stream:
            stream.write(b"new")
            assert storage.get("file") == b"old"

        assert storage.get("file") == b"new"

    def test_a_stream_may_be_closed_before_its_end(self, storage: Storage) -> None:
        with storage.put_stream("file") as stream:
            stream.write(b"all of it")
            stream.close()

        assert storage.get("file") == b"all of it"

    def test_a_long_stream_is_whole(self, storage: Storage) -> None:
        """Longer than what a store takes in one part."""
        pieces = [bytes([n]) * 1_000_003 for n in range(20)]

        with storage.put_stream("file") as stream:
            for piece in pieces:
                assert stream.write(memoryview(piece)) == len(piece)
            assert stream.tell() == 20 * 1_000_003

        assert storage.get("file") == b"".join(pieces)
        with storage.open_input("file") as file:
            file.seek(7_000_000)
            assert file.read(2_000_000) == b"".join(pieces)[7_000_000:9_000_000]

    def test_a_long_listing_is_complete(self, storage: Storage) -> None:
        """Longer than a page of a store that gives its listings in pages."""
        wanted = [f"a/{n:02}" for n in range(17)]
        for path in (*wanted, *(f"b/c{n:02}/file" for n in range(17))):
            storage.put(path, b"")

        assert paths(storage, "a") == wanted
        assert paths(storage, "a", recursive=True) == wanted
        assert list(storage.list_folders("b")) == [f"b/c{n:02}" for n in range(17)]
        assert len(paths(storage, recursive=True)) == 34

        storage.delete_prefix("b")
        assert paths(storage, recursive=True) == wanted

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_a_stream_that_fails_leaves_nothing(self, storage: Storage, error: type[BaseException]) -> None:
        storage.put("kept", b"old")

        def fail_half_way(path: str) -> None:
            with storage.put_stream(path) as stream:
                stream.write(b"half")
                raise error

        for path in ("kept", "new/file"):
            with pytest.raises(error):
                fail_half_way(path)

        assert paths(storage, recursive=True) == ["kept"]
        assert storage.get("kept") == b"old"

    @pytest.mark.parametrize("path", ["file/below", "file/far/below", "folder"])
    def test_files_and_folders_do_not_share_a_name(self, storage: Storage, path: str) -> None:
        if not self.has_folders:
            pytest.skip("a store of objects has no folders")
        storage.put("file", b"x")
        storage.put("folder/file", b"x")

        with pytest.raises(Invalid):
            storage.put(path, b"y")
        with pytest.raises(Invalid):
            storage.put_new(path, b"y")
        with pytest.raises(Invalid), storage.put_stream(path) as stream:
            stream.write(b"y")
        assert paths(storage, recursive=True) == ["file", "folder/file"]

    def test_delete_tells_whether_there_was_a_file(self, storage: Storage) -> None:
        storage.put("a/file", b"x")

        assert storage.delete("a/file") is True
        for absent in ("a/file", "absent", "absent/file", "a"):
            assert storage.delete(absent) is False
        assert storage.head("a/file") is None

    def test_delete_prefix_takes_the_folder_and_no_neighbour(self, storage: Storage) -> None:
        for path in ("a/1", "a/b/2", "a-b/3", "a0", "ab/4", "file"):
            storage.put(path, b"")

        storage.delete_prefix("a")
        storage.delete_prefix("absent/folder")
        storage.delete_prefix("file")

        assert paths(storage, recursive=True) == ["a-b/3", "a0", "ab/4", "file"]
        assert list(storage.list_folders("")) == ["a-b", "ab"]

    def test_delete_prefix_of_the_root_empties_it(self, storage: Storage) -> None:
        storage.put("a/1", b"")
        storage.put("2", b"")

        storage.delete_prefix("")

        assert paths(storage, recursive=True) == []
        storage.put("a/1", b"again")
        assert storage.get("a/1") == b"again"

    def test_a_sweep_takes_no_file(self, storage: Storage) -> None:
        for path in ("a/file", "a/.hidden", "a/b/file"):
            storage.put(path, b"x")

        for folder in ("", "a", "absent/folder", "a/file"):
            assert sweep(storage, folder, written_before_ms=1 << 50) == 0
        assert paths(storage, recursive=True) == ["a/.hidden", "a/b/file", "a/file"]

    def test_delete_many_passes_over_what_is_absent(self, storage: Storage) -> None:
        storage.put("a", b"")
        storage.put("b/c", b"")
        storage.put("d", b"")

        storage.delete_many(path for path in ("a", "absent", "b/c"))

        assert paths(storage, recursive=True) == ["d"]
