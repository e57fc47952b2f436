"""A DynamoDB server in this process: moto, which fails on demand."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.store_server import Answer, Environ, StoreServer


class DynamodbServer(StoreServer):
    kind = "dynamodb"

    def __init__(self) -> None:
        import threading

        from moto.moto_server.werkzeug_app import create_backend_app

        self._app: Any = create_backend_app("dynamodb")
        self._one_at_a_time = threading.Lock()
        super().__init__()

    def carry_out(self, environ: Environ) -> Answer:
        answer: list[tuple[Any, ...]] = []
        with self._one_at_a_time:
            body = b"".join(self._app(environ, lambda *given: answer.append(given)))
        return answer[-1][0], answer[-1][1], body


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[DynamodbServer]:
    """One server for the whole run; each test takes a table of its own."""
    server = DynamodbServer()
    yield server
    server.close()
