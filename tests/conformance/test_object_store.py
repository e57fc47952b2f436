"""What only a store behind a network does: answers get lost, requests fail, listings come in pages, folders are
marked by objects, and reading a whole file to see its footer costs money.

Doors of this process, before each kind of store, count the requests and lose answers on demand.
"""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import Invalid, NotFound, Unavailable
from pyhudi.storage import object_store
from pyhudi.storage.object_store import ObjectStorage
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.table.slices.base_files.opening import open_base_file
from tests.support.s3_server import KEYS_A_PAGE, S3Server
from tests.support.store_server import StoreServer


@pytest.fixture
def path(store_server: StoreServer) -> str:
    return store_server.new_path()


@pytest.fixture
def storage(store_server: StoreServer, path: str) -> ObjectStorage:
    storage = open_storage(parse_location(path, store_server.options))
    assert isinstance(storage, ObjectStorage)
    store_server.requests.clear()
    return storage


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_PAUSES_S", (0.0, 0.0, 0.0))


def once(request: str, times: int = 1):
    """Whether a request is one of the next `times` that begin so."""
    left = [times]

    def answer(seen: str) -> bool:
        if seen.startswith(request) and left[0]:
            left[0] -= 1
            return True
        return False

    return answer


def key(path: str, name: str) -> str:
    return f"/{path.partition('://')[2]}/{name}"


def test_a_creation_whose_answer_got_lost_is_found_to_be_ours(
    store_server: StoreServer, storage: ObjectStorage, path: str
) -> None:
    with store_server.failing(loses_answer_to=once("PUT")):
        assert storage.put_new("file", b"ours") is True

    assert storage.get("file") == b"ours"
    assert [r.partition(" ")[0] for r in store_server.requests] == ["PUT", "PUT", "GET", "GET"]


def test_a_creation_that_failed_before_it_landed_is_tried_again(
    store_server: StoreServer, storage: ObjectStorage
) -> None:
    with store_server.failing(refuses=once("PUT", 3)):
        assert storage.put_new("file", b"ours") is True
    assert storage.put_new("file", b"ours") is False


@pytest.mark.parametrize("content", [b"another's", b"the same"])
def test_a_creation_that_failed_while_another_s_landed_is_not_ours(
    store_server: StoreServer, storage: ObjectStorage, content: bytes
) -> None:
    """Also where the other put the very same bytes, as an empty request's are."""
    assert storage.put_new("file", content) is True
    with store_server.failing(refuses=once("PUT")):
        assert storage.put_new("file", b"the same") is False
    assert storage.get("file") == content


def test_a_creation_that_nobody_can_tell_apart_is_unavailable(
    store_server: StoreServer, storage: ObjectStorage, path: str
) -> None:
    """An object with our bytes and without a mark: some store does not keep metadata."""
    store_server.put_past_the_client(key(path, "file"), b"the same")
    with store_server.failing(refuses=once("PUT")), pytest.raises(Unavailable, match="somebody created it"):
        storage.put_new("file", b"the same")
    with store_server.failing(refuses=once("PUT")):
        assert storage.put_new("file", b"ours") is False
    assert storage.put_new("file", b"the same") is False


def test_a_store_that_stays_away_is_unavailable(store_server: StoreServer, storage: ObjectStorage) -> None:
    storage.put("file", b"x")
    calls = (
        lambda: storage.get("file"),
        lambda: storage.get("file", 0, 1),
        lambda: storage.open_input("file"),
        lambda: storage.head("file"),
        lambda: storage.list(""),
        lambda: storage.list("", recursive=True),
        lambda: storage.list_folders(""),
        lambda: storage.put_new("new", b""),
        lambda: storage.put("file", b""),
        lambda: storage.put_if("file", b"", None),
        lambda: storage.get_versioned("file"),
        lambda: storage.delete("file"),
        lambda: storage.delete_prefix(""),
        lambda: storage.delete_many(["file"]),
    )
    with store_server.failing(refuses=lambda request: True):
        for call in calls:
            with pytest.raises(Unavailable, match=r"^(s3|gs|az)://tables/a folder/table-\d+"):
                call()
        with pytest.raises(Unavailable, match="cannot write it"), storage.put_stream("new") as stream:
            stream.write(b"x")
    assert storage.get("file") == b"x"


def test_a_request_that_may_be_repeated_is(store_server: StoreServer, path: str) -> None:
    storage = open_storage(parse_location(path, {**store_server.options, "max_retries": "3"}))
    with store_server.failing(refuses=once("PUT", 1)):
        storage.put("file", b"x")
    with store_server.failing(refuses=once("GET", 2)):
        assert storage.get("file") == b"x"


def test_nobody_listening_is_unavailable() -> None:
    options = {"endpoint": "http://127.0.0.1:9", "access_key_id": "x", "secret_access_key": "x", "max_retries": "0"}
    with pytest.raises(Unavailable, match="cannot read it"):
        open_storage(parse_location("s3://tables/t", options)).get("file")


def test_a_bucket_that_is_not_there_is_named(store_server: StoreServer) -> None:
    storage = open_storage(parse_location(f"{store_server.kind}://nosuchbucket/table", store_server.options))
    with pytest.raises(NotFound, match=r"(s3|gs|az)://nosuchbucket/table/file: expected a file in an existing bucket"):
        storage.put("file", b"x")


def test_a_name_that_the_store_does_not_take_is_invalid(storage: ObjectStorage) -> None:
    with pytest.raises(Invalid, match="choose another"):
        storage.put("a\nb", b"")


def test_an_upload_that_failed_leaves_no_parts(store_server: StoreServer, storage: ObjectStorage) -> None:
    def fail(error: type[BaseException]) -> None:
        with storage.put_stream("big") as stream:
            for _ in range(3):
                stream.write(bytes(object_store.PART_BYTES))
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)

    assert storage.head("big") is None
    if store_server.kind != "az":  # which has no call for it: blocks that no list names are gone after a week
        assert store_server.open_uploads == 0
        assert any("uploadId" in request and request.startswith("DELETE") for request in store_server.requests)


def test_an_upload_whose_last_answer_got_lost_may_have_landed(
    store_server: StoreServer, storage: ObjectStorage
) -> None:
    content = bytes(2 * object_store.PART_BYTES)
    completes, mark = (once("PUT"), "comp=blocklist") if store_server.kind == "az" else (once("POST"), "uploadId")
    with (
        store_server.failing(loses_answer_to=lambda request: mark in request and completes(request)),
        pytest.raises(Unavailable),
        storage.put_stream("big") as stream,
    ):
        stream.write(content)
    assert storage.get("big") == content


def test_markers_of_folders_are_no_files(store_server: StoreServer, storage: ObjectStorage, path: str) -> None:
    """As Hadoop's S3 client and consoles leave them: objects without content whose names end in `/`."""
    for name in ("", "a/", "a/b/", "a/c/", "a/b/d/"):
        store_server.put_past_the_client(key(path, name))
    storage.put("a/b/file", b"x")
    storage.put("a/b/empty", b"")
    storage.put("top", b"")

    assert [f.path for f in storage.list("", recursive=True)] == ["a/b/empty", "a/b/file", "top"]
    assert [f.path for f in storage.list("a", recursive=True)] == ["a/b/empty", "a/b/file"]
    assert [f.path for f in storage.list("a/c", recursive=True)] == []
    assert [f.path for f in storage.list("")] == ["top"]
    assert [f.path for f in storage.list("a/b")] == ["a/b/empty", "a/b/file"]
    assert list(storage.list_folders("a")) == ["a/b", "a/c"]
    assert storage.head("a/c") is None

    storage.delete_prefix("a/b")
    assert [f.path for f in storage.list("", recursive=True)] == ["top"]


def test_a_table_is_made_where_only_a_marked_folder_is(store_server: StoreServer, path: str) -> None:
    from pyhudi import HudiTable

    store_server.put_past_the_client(key(path, ""))
    store_server.put_past_the_client(key(path, ".hoodie/"))
    table = HudiTable.create(path, name="t", record_key="id", storage_options=store_server.options)
    assert table.path == path


def test_a_listing_is_paged(s3_server: S3Server) -> None:
    storage = open_storage(parse_location(s3_server.new_path(), s3_server.options))
    for n in range(2 * KEYS_A_PAGE + 1):
        storage.put(f"a/{n:02}", b"x")
    s3_server.requests.clear()

    assert len(list(storage.list("a"))) == 2 * KEYS_A_PAGE + 1
    assert len(s3_server.requests) == 3


def test_requests_of_each_call(store_server: StoreServer, storage: ObjectStorage) -> None:
    """What a call costs. A change of these counts is a decision.

    Azure gives no end of a file whose size is not known; Google deletes one file at a time. Both may stop at one that
    is not there.
    """
    opened = {"az": {"HEAD": 1, "GET": 1}}.get(store_server.kind, {"GET": 1})
    deleted = {"gs": {"DELETE": 1}}.get(store_server.kind, {"POST": 1})
    deleted_many = {"gs": {"DELETE": 4}, "az": {"POST": 3}}.get(store_server.kind, {"POST": 1})
    storage.put("a/file", b"0123456789")

    def count(call) -> dict[str, int]:
        store_server.requests.clear()
        call()
        return dict(store_server.counts())

    assert count(lambda: storage.get("a/file")) == {"GET": 1}
    assert count(lambda: storage.get("a/file", 2, 4)) == {"GET": 1}
    assert count(lambda: storage.open_input("a/file").read()) == opened
    assert count(lambda: storage.head("a/file")) == {"HEAD": 1}
    assert count(lambda: storage.put("b", b"x")) == {"PUT": 1}
    assert count(lambda: storage.put_new("c", b"x")) == {"PUT": 1}
    assert count(lambda: storage.put_new("c", b"x")) == {"PUT": 1, "HEAD": 1}
    assert count(lambda: list(storage.list("a", recursive=True))) == {"GET": 1}
    assert count(lambda: storage.delete("c")) == {"HEAD": 1, **deleted}
    assert count(lambda: storage.delete_many(["b", "absent"])) == deleted_many
    assert count(lambda: storage.make_folder("x/y")) == {}
    with storage.put_stream("d") as stream:
        stream.write(b"x")
        store_server.requests.clear()
    assert store_server.counts() == {"PUT": 1}


def a_parquet_file(storage: ObjectStorage) -> int:
    """Eight columns of 100,000 numbers that do not compress, in one row group; gives its size."""
    numbers = pa.array(range(100_000), pa.int64())
    table = pa.table({f"c{n}": pa.compute.multiply(numbers, 7_919 + n) for n in range(8)})
    with storage.put_stream("data.parquet") as sink:
        pq.write_table(table, sink, compression="none", use_dictionary=False)
    info = storage.head("data.parquet")
    assert info is not None
    return info.size_bytes


def test_a_parquet_file_is_read_by_ranges(store_server: StoreServer, storage: ObjectStorage) -> None:
    """The footer with the first request; neighbouring columns with one more."""
    size_bytes = a_parquet_file(storage)
    assert size_bytes > 6_000_000
    store_server.requests.clear()

    file = open_base_file(storage, "data.parquet")
    assert file.row_count == 100_000
    assert store_server.counts() == ({"HEAD": 1, "GET": 1} if store_server.kind == "az" else {"GET": 1})
    assert file.read(columns=["c2", "c3"]).num_columns == 2

    ranges = [request.rpartition("bytes=")[2] for request in store_server.requests if request.startswith("GET")]
    assert len(ranges) <= 3
    assert ranges[0] == (f"{size_bytes - 65536}-{size_bytes - 1}" if store_server.kind == "az" else "-65536")
    fetched = sum(int(end) - int(start) + 1 for start, end in (r.split("-") for r in ranges[1:]))
    assert fetched < size_bytes * 0.3


def test_a_file_that_is_replaced_while_it_is_read_is_not_mixed(storage: ObjectStorage) -> None:
    storage.put("file", b"a" * 300_000)
    with storage.open_input("file") as file:
        file.read(10)
        storage.put("file", b"b" * 300_000)
        file.seek(100_000)
        with pytest.raises(Unavailable, match="replaced while it was being read"):
            file.read(10)


def test_one_of_two_replaces_a_version(storage: ObjectStorage) -> None:
    first = storage.put_if("file", b"1", None)
    assert first is not None
    assert storage.put_if("file", b"2", None) is None
    second = storage.put_if("file", b"2", first)
    assert second is not None
    assert storage.put_if("file", b"3", first) is None
    assert storage.get_versioned("file") == (b"2", second)
    storage.delete("file")
    assert storage.put_if("file", b"3", second) is None
    assert storage.get_versioned("file") is None


def test_exactly_one_of_many_replaces_a_version(storage: ObjectStorage) -> None:
    version = storage.put_if("file", b"0", None)
    start = threading.Barrier(6)

    def replace(writer: int) -> bool:
        start.wait()
        return storage.put_if("file", b"writer %d" % writer, version) is not None  # the same bytes have the same ETag

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(replace, range(6))) == 1


def test_a_location_travels(storage: ObjectStorage) -> None:
    storage.put("file", b"x")
    there = pickle.loads(pickle.dumps(storage.location))
    assert open_storage(there).get("file") == b"x"


def test_credentials_come_from_the_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    storage = open_storage(parse_location(s3_server.new_path()))
    storage.put("file", b"x")
    assert storage.get("file") == b"x"
