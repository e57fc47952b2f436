"""A service that is told of commits could be told nothing or the wrong thing, or make a write fail that has landed.

A real HTTP server of this process listens.
"""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pyhudi import HudiTable
from pyhudi.api.commit_callback import CommitCallback
from pyhudi.errors import Invalid
from pyhudi.format.names import PROPERTIES
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, arrow, dump

PREFIX = "hoodie.write.commit.callback."
ROW = Row("k", "oslo", 1, 1)


class Listener:
    """What was posted: headers and bodies. `status`: what it answers; None: it hangs up."""

    def __init__(self, status: int | None = 200, location: str | None = None) -> None:
        self.status, self.location = status, location
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        self.url = ""


@contextmanager
def listening(listener: Listener) -> Iterator[Listener]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listener.heard.append((self.path, {name.lower(): of for name, of in self.headers.items()}, body))
            if listener.status is not None:
                self.send_response(listener.status)
                if listener.location is not None:
                    self.send_header("Location", listener.location)
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    listener.url = f"http://127.0.0.1:{server.server_port}/hook?secret=s3cr3t"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield listener
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def table(storage: MemoryStorage) -> HudiTable:
    return Handles(storage).create()


def options(url: str, **more: str) -> dict[str, str]:
    return {f"{PREFIX}on": "true", f"{PREFIX}http.url": url, **{f"{PREFIX}{name}": of for name, of in more.items()}}


def test_each_commit_is_told_with_its_files(table: HudiTable) -> None:
    asked = {"http.api.key": "key-1", "http.custom.headers": "X-Team: data ; X-Time: 10:30;"}
    with listening(Listener()) as listener:
        result = table.upsert(
            arrow([ROW]), options=options(listener.url, **asked), extra_metadata={"job": "7"}
        )  # fmt: skip
        table.delete_partitions(["oslo"], options=options(listener.url))
        table.upsert(arrow([ROW]))

    (path, headers, body), (_, default, deletion) = listener.heard
    assert path == "/hook?secret=s3cr3t"
    assert headers["content-type"] == "application/json; charset=UTF-8"
    assert (headers["hudi-callback-key"], headers["x-team"], headers["x-time"]) == ("key-1", "data", "10:30")
    assert default["hudi-callback-key"] == "hudi_write_commit_http_callback"
    message = json.loads(body)
    (stat,) = message.pop("hoodieWriteStat")
    assert (stat["partitionPath"], stat["numInserts"], stat["prevCommit"]) == ("oslo", 1, "null")
    assert stat["path"].startswith("oslo/")
    assert message == {
        "commitTime": result.requested,
        "tableName": "t",
        "basePath": table.path,
        "commitActionType": "commit",
        "extraMetadata": {"job": "7"},
    }
    gone = json.loads(deletion)
    assert (gone["commitActionType"], gone["hoodieWriteStat"]) == ("replacecommit", [])


@pytest.mark.parametrize("status", [500, 404, 302, None])
def test_a_service_that_fails_is_a_line_in_the_log(
    table: HudiTable, caplog: pytest.LogCaptureFixture, status: int | None
) -> None:
    heard: list[str | None] = []
    with listening(Listener(status)) as listener, caplog.at_level(logging.WARNING, logger="pyhudi"):
        result = table.upsert(
            arrow([ROW]), options=options(listener.url), on_commit=lambda of: heard.append(of.requested)
        )

    assert len(listener.heard) == 1
    assert heard == [result.requested], "the call's own callback comes all the same"
    assert table.scan().to_arrow().num_rows == 1
    (line,) = [record.getMessage() for record in caplog.records if "could not be told" in record.getMessage()]
    assert f"commit '{result.requested}' landed" in line
    assert "s3cr3t" not in line


def test_a_redirect_gets_no_credentials(table: HudiTable, caplog: pytest.LogCaptureFixture) -> None:
    with (
        listening(Listener()) as other,
        listening(Listener(307, location=other.url)) as listener,
        caplog.at_level(logging.WARNING, logger="pyhudi"),
    ):
        table.upsert(arrow([ROW]), options=options(listener.url))

    assert (len(listener.heard), other.heard) == (1, [])
    assert any("answered 307; redirects are not followed" in record.getMessage() for record in caplog.records)


def test_an_answer_that_never_ends_holds_no_write_up(table: HudiTable, caplog: pytest.LogCaptureFixture) -> None:
    """Each byte comes in time, the whole never does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread = threading.Thread(target=_answer_without_end, args=(server,))
        thread.start()
        begun = time.monotonic()
        with caplog.at_level(logging.WARNING, logger="pyhudi"):
            table.upsert(arrow([ROW]), options=options(url, **{"http.timeout.seconds": "1"}))
        took = time.monotonic() - begun
        thread.join()

    assert took < 30
    assert any("no answer within 1 seconds" in record.getMessage() for record in caplog.records)


def _answer_without_end(server: socket.socket) -> None:
    """A byte every tenth of a second, until the other side hangs up."""
    connection, _ = server.accept()
    with connection, suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            connection.sendall(b"x")
            time.sleep(0.1)


def test_the_table_has_no_say_in_who_is_told(storage: MemoryStorage, table: HudiTable) -> None:
    with pytest.raises(Invalid, match="not stored with a table"):
        Handles(MemoryStorage()).create(properties=options("http://127.0.0.1:9/"))
    with listening(Listener()) as listener:
        lines = "".join(f"{name}={of}\n" for name, of in options(listener.url).items())
        properties = storage.get(PROPERTIES)
        storage.put(PROPERTIES, properties + lines.encode())
        table.upsert(arrow([ROW]))

    assert listener.heard == []


def test_secrets_are_in_no_text_of_a_callback() -> None:
    callback = CommitCallback.from_options(
        options("https://host/x?token=s3cr3t", **{"http.api.key": "s3cr3t", "http.custom.headers": "X-A:s3cr3t"})
    )

    assert "s3cr3t" not in repr(callback)


def test_a_service_that_is_not_there_is_a_line_in_the_log(table: HudiTable, caplog: pytest.LogCaptureFixture) -> None:
    with listening(Listener()) as listener:
        url = listener.url  # nobody listens there any more
    with caplog.at_level(logging.WARNING, logger="pyhudi"):
        table.upsert(arrow([ROW]), options=options(url))

    assert table.scan().to_arrow().num_rows == 1
    assert any("could not be told" in record.getMessage() for record in caplog.records)


def test_a_write_that_did_nothing_is_not_told(table: HudiTable) -> None:
    with listening(Listener()) as listener:
        table.upsert(arrow([]), options={**options(listener.url), "hoodie.allow.empty.commit": "false"})

    assert listener.heard == []


@pytest.mark.parametrize(
    "given,said",
    [
        ({}, "http.url': expected an address of http or https"),
        ({"http.url": "file:///etc/passwd"}, "found one of scheme 'file'"),
        ({"http.url": "http://"}, "expected an address"),
        ({"http.url": "http://user:pass@host/"}, "without a user in it"),
        ({"http.url": "http://host:port/"}, "expected an address"),
        ({"http.url": "http://[host/"}, "expected an address"),
        ({"http.url": "http://host/a b"}, "expected an address"),
        ({"http.url": "http://host", "http.timeout.seconds": "0"}, "a whole number of at least 1"),
        ({"http.url": "http://host", "http.custom.headers": "X-A"}, "found 'X-A' without one of the two"),
        ({"http.url": "http://host", "http.custom.headers": "X-A:1;:2"}, "'name:value;name:value'"),
        ({"http.url": "http://host", "http.custom.headers": "X A:1"}, "'name:value;name:value'"),
        ({"http.url": "http://host", "http.custom.headers": "X-A:1\r\nX-B:2"}, "'name:value;name:value'"),
        ({"http.url": "http://host", "http.api.key": "ü"}, "http.api.key': expected printable ASCII"),
    ],
)
def test_what_could_never_be_sent_is_refused_before_the_write(
    table: HudiTable, storage: MemoryStorage, given: dict[str, str], said: str
) -> None:
    before = dump(storage)
    asked = {f"{PREFIX}on": "true", **{f"{PREFIX}{name}": of for name, of in given.items()}}

    for write in (
        lambda: table.upsert(arrow([ROW]), options=asked),
        lambda: table.delete_partitions(["oslo"], options=asked),
    ):
        with pytest.raises(Invalid, match=r"hoodie\.write\.commit\.callback") as error:
            write()
        assert said in str(error.value)
        assert "pass" not in str(error.value)
    assert dump(storage) == before


def test_a_callback_is_off_unless_it_is_on() -> None:
    assert CommitCallback.from_options({}) is None
    assert CommitCallback.from_options({f"{PREFIX}on": "false", f"{PREFIX}http.url": "nonsense"}) is None
    found = CommitCallback.from_options(options("https://host:8443/x"))
    assert found is not None
    assert (found.timeout_seconds, found.headers) == (30, ())
