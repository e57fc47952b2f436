"""Azure's blobs: Azurite, Microsoft's own emulator, behind a door that counts requests and loses answers."""

import base64
import hashlib
import hmac
import os
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.server_process import ServerProcess, find_program, free_port, headers_of
from tests.support.store_server import BUCKET, Answer, Environ, StoreServer, body_of

ACCOUNT = "devaccount"


class AzureServer(StoreServer):
    kind = "az"

    def __init__(self, folder: Path) -> None:
        self._key = os.urandom(32)
        port = free_port()
        account_key = base64.b64encode(self._key).decode()
        self._azurite = ServerProcess(
            [
                find_program("azurite-blob", "node_modules/.bin"), "--inMemoryPersistence", "--silent",
                "--disableTelemetry", "--blobHost", "127.0.0.1", "--blobPort", str(port),
            ],
            port=port, folder=folder, environment={"AZURITE_ACCOUNTS": f"{ACCOUNT}:{account_key}"},
        )  # fmt: skip
        super().__init__()
        self.options = {
            "endpoint": f"{self.endpoint}/{ACCOUNT}",
            "account_name": ACCOUNT,
            "account_key": account_key,
            "max_retries": "0",
        }
        self._put(f"/{BUCKET}", "restype=container")

    def carry_out(self, environ: Environ) -> Answer:
        return self._azurite.ask(
            environ["REQUEST_METHOD"], environ["REQUEST_URI"], headers_of(environ), body_of(environ)
        )  # fmt: skip

    def put_past_the_client(self, path: str, content: bytes = b"") -> None:
        self._put(path, content=content)

    def close(self) -> None:
        super().close()
        self._azurite.close()

    def _put(self, path: str, query: str = "", content: bytes = b"") -> None:
        """A request signed with the account's key, as "Authorize with Shared Key" of Azure's reference says."""
        target = quote(f"/{ACCOUNT}{path}")
        headers = {"x-ms-blob-type": "BlockBlob", "x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
        size = str(len(content)) if content else ""
        shown = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
        asked = f"\n{query.replace('=', ':')}" if query else ""
        signed = f"PUT\n\n\n{size}\n\n\n\n\n\n\n\n\n{shown}/{ACCOUNT}{target}{asked}"
        digest = base64.b64encode(hmac.digest(self._key, signed.encode(), hashlib.sha256)).decode()
        headers["authorization"] = f"SharedKey {ACCOUNT}:{digest}"
        url = f"{target}?{query}" if query else target
        status, _, body = self._azurite.ask("PUT", url, headers.items(), content)
        assert status.startswith("201"), body.decode()


@pytest.fixture(scope="session")
def az_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """One server for the whole run; each test takes a path of its own."""
    server = AzureServer(tmp_path_factory.mktemp("azurite"))
    yield server
    server.close()
