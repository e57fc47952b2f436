"""Google Cloud Storage: fake-gcs-server behind a door that counts requests and loses answers.

obstore writes through the XML API, of which fake-gcs-server (1.56) has only reads, listings and deletions. The door
hands on what it has as it is, and turns these into what it has in the JSON API:

* a put, with `x-goog-if-generation-match` and metadata: an upload with `ifGenerationMatch`, which the server decides;
* a multipart upload: the door keeps the parts, and puts them together at its end;
* `If-Match` of a read, which the server passes over: the door compares the ETag of the answer.

Not tried here, for the server has neither: listings in pages, and the checks of credentials.
"""

import json
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote
from xml.etree import ElementTree

import pytest

from tests.support.server_process import ServerProcess, find_program, free_port, headers_of
from tests.support.store_server import BUCKET, Answer, Environ, StoreServer, body_of

_CONDITION = "HTTP_X_GOOG_IF_GENERATION_MATCH"


class GcsServer(StoreServer):
    kind = "gs"

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self._gcs = ServerProcess(
            [
                find_program("fake-gcs-server", "bin"), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1",
                "-port", str(port), "-public-host", f"127.0.0.1:{port}", "-log-level", "error",
            ],
            port=port, folder=folder,
        )  # fmt: skip
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._upload_ids = count(1)
        self._uploads_lock = threading.Lock()
        super().__init__()
        nobody = {"disable_oauth": True, "client_email": "", "private_key_id": "", "private_key": ""}
        self.options = {"service_account_key": json.dumps(nobody), "base_url": self.endpoint, "max_retries": "0"}
        status, _, body = self._gcs.ask(
            "POST", "/storage/v1/b", [("content-type", "application/json")], json.dumps({"name": BUCKET}).encode()
        )  # fmt: skip
        assert status.startswith("200"), body.decode()

    def carry_out(self, environ: Environ) -> Answer:
        method, target = environ["REQUEST_METHOD"], environ["REQUEST_URI"]
        path, _, query = target.partition("?")
        asked = parse_qs(query, keep_blank_values=True)
        if "uploads" in asked or "uploadId" in asked:
            return self._upload(method, path, asked, environ)
        if method == "PUT":
            return self._insert(path, environ, body_of(environ))
        status, headers, body = self._gcs.ask(method, target, headers_of(environ), body_of(environ))
        etag = {name.lower(): value for name, value in headers}.get("etag")
        if status.startswith("2") and etag != environ.get("HTTP_IF_MATCH", etag):
            return "412 Precondition Failed", [("Content-Length", "0")], b""
        return status, headers, body

    def put_past_the_client(self, path: str, content: bytes = b"") -> None:
        status, _, body = self._insert(quote(path), {}, content)
        assert status.startswith("200"), body.decode()

    def close(self) -> None:
        super().close()
        self._gcs.close()

    def _insert(self, path: str, environ: Environ, content: bytes) -> Answer:
        bucket, _, name = path.removeprefix("/").partition("/")
        target = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(unquote(name), safe='')}"
        if _CONDITION in environ:
            target += f"&ifGenerationMatch={environ[_CONDITION]}"
        status, _, body = self._gcs.ask("POST", target, headers_of(environ), content)
        if not status.startswith("200"):
            return status, [("Content-Length", str(len(body)))], body
        made = json.loads(body)
        etag = made["etag"].strip('"')
        headers = [("ETag", f'"{etag}"'), ("x-goog-generation", str(made["generation"])), ("Content-Length", "0")]
        return "200 OK", headers, b""

    def _upload(self, method: str, path: str, asked: dict[str, list[str]], environ: Environ) -> Answer:
        content = body_of(environ)
        upload_id = asked.get("uploadId", [""])[0]
        with self._uploads_lock:
            if "uploads" in asked:
                upload_id = str(next(self._upload_ids))
                self._uploads[upload_id] = {}
                return _xml("InitiateMultipartUploadResult", UploadId=upload_id)
            if upload_id not in self._uploads:
                return "404 Not Found", [("Content-Length", "0")], b""
            if method == "PUT":
                number = int(asked["partNumber"][0])
                self._uploads[upload_id][number] = content
                return "200 OK", [("ETag", f'"{number}"'), ("Content-Length", "0")], b""
            parts = self._uploads.pop(upload_id)
        if method == "DELETE":
            return "204 No Content", [], b""
        assert method == "POST"
        named = [int(found.text or "") for found in ElementTree.fromstring(content).iter() if _is(found, "PartNumber")]
        status, headers, body = self._insert(path, {}, b"".join(parts[number] for number in named))
        if not status.startswith("200"):
            return status, headers, body
        etag = dict(headers)["ETag"]
        _, shown, body = _xml("CompleteMultipartUploadResult", ETag=etag)
        return status, [*shown, *(header for header in headers if header[0] == "x-goog-generation")], body

    @property
    def open_uploads(self) -> int:
        with self._uploads_lock:
            return len(self._uploads)


def _is(element: ElementTree.Element, name: str) -> bool:
    return element.tag.rpartition("}")[2] == name


def _xml(root: str, **fields: str) -> Answer:
    element = ElementTree.Element(root)
    for name, value in fields.items():
        ElementTree.SubElement(element, name).text = value
    body = ElementTree.tostring(element)
    return "200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))], body


@pytest.fixture(scope="session")
def gs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsServer]:
    """One server for the whole run; each test takes a path of its own."""
    server = GcsServer(tmp_path_factory.mktemp("gcs"))
    yield server
    server.close()
