"""An S3 server in this process: moto behind a door that counts requests, loses answers and fails on demand."""

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.store_server import BUCKET, Answer, Environ, StoreServer

KEYS_A_PAGE = 5
"""Every listing of more is paged."""


class S3Server(StoreServer):
    kind = "s3"

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = str(KEYS_A_PAGE)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._one_at_a_time = threading.Lock()  # moto (5.2) ends a read with 500 when the object is replaced meanwhile
        super().__init__()
        self.options = {
            "endpoint": self.endpoint,
            "access_key_id": "test",
            "secret_access_key": "test",
            "region": "us-east-1",
            "max_retries": "0",
        }
        self.call("PUT", f"/{BUCKET}")

    def carry_out(self, environ: Environ) -> Answer:
        answer: list[tuple[Any, ...]] = []
        with self._one_at_a_time:
            body = b"".join(self._app(environ, lambda *given: answer.append(given)))
        return answer[-1][0], answer[-1][1], body

    def put_past_the_client(self, path: str, content: bytes = b"") -> None:
        self.call("PUT", path, content)

    @property
    def open_uploads(self) -> int:
        return self.call("GET", f"/{BUCKET}?uploads").count(b"<Upload>")

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A plain request, past the client under test."""
        from urllib.parse import quote
        from urllib.request import Request, urlopen

        url = self.endpoint + quote(path, safe="/?=&")
        headers = {"Content-Type": "application/octet-stream"}  # a form would be parsed
        with urlopen(Request(url, data=body, method=method, headers=headers)) as answer:
            return bytes(answer.read())


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One server for the whole run; each test takes a path of its own."""
    server = S3Server()
    yield server
    server.close()
