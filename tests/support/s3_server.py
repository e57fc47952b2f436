"""An S3 server in this process: moto behind a door that counts requests, loses answers and fails on demand."""

import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

BUCKET = "tables"
KEYS_A_PAGE = 5
"""Every listing of more is paged."""

FAILURE = "503 Service Unavailable"


class S3Server:
    """`http://127.0.0.1:PORT`. `requests`: what came in, as `METHOD key`, or `METHOD key range` for a part of one."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = str(KEYS_A_PAGE)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="s3-server", daemon=True)
        self._thread.start()
        self._tables = count(1)
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()  # moto (5.2) ends a read with 500 when the object is replaced meanwhile
        self.requests: list[str] = []
        self.refuses: Callable[[str], bool] = lambda request: False
        self.loses_answer_to: Callable[[str], bool] = lambda request: False
        self.options = {
            "endpoint": f"http://127.0.0.1:{self._server.server_port}",
            "access_key_id": "test",
            "secret_access_key": "test",
            "region": "us-east-1",
            "max_retries": "0",
        }
        self.call("PUT", f"/{BUCKET}")

    @property
    def endpoint(self) -> str:
        return self.options["endpoint"]

    def new_path(self) -> str:
        """An `s3://` path where nothing is."""
        return f"s3://{BUCKET}/a folder/table-{next(self._tables)}"

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A plain request, past the client under test."""
        from urllib.parse import quote
        from urllib.request import Request, urlopen

        url = self.endpoint + quote(path, safe="/?=&")
        headers = {"Content-Type": "application/octet-stream"}  # a form would be parsed
        with urlopen(Request(url, data=body, method=method, headers=headers)) as answer:
            return bytes(answer.read())

    def counts(self) -> Counter[str]:
        """Requests by method since `requests` was cleared."""
        return Counter(request.partition(" ")[0] for request in self.requests)

    @contextmanager
    def failing(
        self, *, refuses: Callable[[str], bool] | None = None, loses_answer_to: Callable[[str], bool] | None = None
    ) -> Iterator[None]:
        """While the block runs: requests that change nothing and fail, or that are carried out and fail."""
        self.refuses = refuses or self.refuses
        self.loses_answer_to = loses_answer_to or self.loses_answer_to
        try:
            yield
        finally:
            self.refuses = self.loses_answer_to = lambda request: False

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        if environ.get("QUERY_STRING"):
            request += f"?{environ['QUERY_STRING']}"
        if environ.get("HTTP_RANGE"):
            request += f" {environ['HTTP_RANGE']}"
        with self._lock:
            self.requests.append(request)
        if self.refuses(request):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return _fail(start_response)
        answer: list[tuple[Any, ...]] = []
        with self._one_at_a_time:
            body = b"".join(self._app(environ, lambda *given: answer.append(given)))
        if self.loses_answer_to(request):
            return _fail(start_response)
        start_response(*answer[-1])
        return [body]


def _fail(start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response(FAILURE, [("Content-Length", "0")])
    return [b""]


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One server for the whole run; each test takes a path of its own."""
    server = S3Server()
    yield server
    server.close()
