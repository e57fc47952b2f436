"""A store behind a door of this process, which counts requests, loses answers and fails on demand."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeAlias

BUCKET = "tables"
FAILURE = "503 Service Unavailable"

Environ: TypeAlias = dict[str, Any]
Answer: TypeAlias = tuple[str, list[tuple[str, str]], bytes]
"""A status line, headers and a body."""


class StoreServer:
    """`http://127.0.0.1:PORT`. `requests`: what came in, as `METHOD key`, or `METHOD key range` for a part of one.

    A kind of store says how a request is carried out, and sets `options` for whoever opens a table there.
    """

    kind: str
    options: dict[str, str]

    def __init__(self) -> None:
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"{self.kind}-server", daemon=True)
        self._thread.start()
        self._tables = count(1)
        self._lock = threading.Lock()
        self.requests: list[str] = []
        self.refuses: Callable[[str], bool] = lambda request: False
        self.loses_answer_to: Callable[[str], bool] = lambda request: False

    def carry_out(self, environ: Environ) -> Answer:
        """What the store itself says to a request."""
        raise NotImplementedError

    def put_past_the_client(self, path: str, content: bytes = b"") -> None:
        """An object at an exact key, whatever the client under test thinks of it."""
        raise NotImplementedError

    @property
    def open_uploads(self) -> int:
        """Uploads in parts that were neither completed nor aborted."""
        raise NotImplementedError

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def new_path(self) -> str:
        """A path where nothing is."""
        return f"{self.kind}://{BUCKET}/a folder/table-{next(self._tables)}"

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

    def _answer(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        if environ.get("QUERY_STRING"):
            request += f"?{environ['QUERY_STRING']}"
        ranged = environ.get("HTTP_RANGE") or environ.get("HTTP_X_MS_RANGE")
        if ranged:
            request += f" {ranged}"
        with self._lock:
            self.requests.append(request)
        if self.refuses(request):
            body_of(environ)
            return _fail(start_response)
        status, headers, body = self.carry_out(environ)
        if self.loses_answer_to(request):
            return _fail(start_response)
        start_response(status, headers)
        return [body]


def body_of(environ: Environ) -> bytes:
    """A request's body. It must be read, or the connection is of no more use."""
    return bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))


def _fail(start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response(FAILURE, [("Content-Length", "0")])
    return [b""]
