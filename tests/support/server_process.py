"""Programs that speak like a store, each a process of its own. `tools/cloud_servers.sh` installs them."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support.store_server import Answer, Environ

INSTALLED_DIR = Path(__file__).parents[2] / "build" / "cloud_servers"
_STARTS_WITHIN_S = 240
_OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


def find_program(name: str, folder: str) -> str:
    """Where a program is: as `tools/cloud_servers.sh` installed it, or on the PATH. Skips the test where it is not."""
    found = shutil.which(name, path=str(INSTALLED_DIR / folder)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: run tools/cloud_servers.sh")
    return found


class ServerProcess:
    """A server on a free port of this machine, from now until `close`."""

    def __init__(
        self, command: Sequence[str], *, port: int, folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.port = port
        self._log = folder / "server.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **(environment or {})}
            )  # fmt: skip
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise AssertionError(f"{command[0]} did not start: {self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def ask(self, method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> Answer:
        """One request; `target` goes out as it is."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            if body or method in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _OF_THE_CONNECTION]
            size = answer.getheader("Content-Length", "0") if method == "HEAD" else str(len(content))
            return f"{answer.status} {answer.reason}", [*kept, ("Content-Length", size)], content
        finally:
            connection.close()

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def headers_of(environ: Environ) -> list[tuple[str, str]]:
    """A request's headers, to be sent on."""
    names = {name: name[5:].replace("_", "-").lower() for name in environ if name.startswith("HTTP_")}
    headers = [(sent, environ[name]) for name, sent in names.items() if sent not in ("host", *_OF_THE_CONNECTION)]
    if "HTTP_DATE" in environ:  # signed
        headers.append(("date", environ["HTTP_DATE"]))
    if environ.get("CONTENT_TYPE"):
        headers.append(("content-type", environ["CONTENT_TYPE"]))
    return headers
