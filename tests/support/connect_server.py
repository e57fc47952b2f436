"""A Spark Connect server of PySpark's own jars, in a process of its own."""

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.support.spark_jvm import SHORT_LIVED

ROOT = Path(__file__).parents[2]
WAIT_S = 180
NEEDED = ("grpc", "grpc_status", "google.protobuf", "google.rpc", "zstandard")
"""Packages that a client of PySpark 4.3 needs. Earlier releases need fewer."""

SETTINGS = {
    **SHORT_LIVED,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def missing_packages() -> list[str]:
    return [module for module in NEEDED if not _is_there(module)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class ConnectServer:
    """Start one with `with`. `remote`: what a client connects to. `sources`: the PYTHONPATH of the server's Python."""

    def __init__(self, folder: Path, sources: str | None = None, port: int | None = None) -> None:
        self.folder, self.sources = folder, sources if sources is not None else str(ROOT / "src")
        self.port = port or _free_port()
        self.remote = f"sc://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        import pyspark

        self.folder.mkdir(parents=True, exist_ok=True)
        home = Path(pyspark.__file__).parent
        settings = {
            **SETTINGS,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }
        stated = [part for name, text in settings.items() for part in ("--conf", f"{name}={text}")]
        command = [
            str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--master", "local[2]", "--driver-memory", "1g", *stated, "spark-internal",
        ]  # fmt: skip
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": self.sources,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + WAIT_S
        while not self._listens():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.2)

    def kill(self) -> None:
        """Let it die at once, with its Python processes."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def log(self) -> str:
        """The end of what the server says, without what it says of each request."""
        lines = (self.folder / "log").read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if " INFO " not in line)[-4_000:]

    def _listens(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def client_environment(remote: str) -> Mapping[str, str]:
    """The environment of a client's process, whose tests or script use the server."""
    return os.environ | {
        "PYHUDI_TEST_REMOTE": remote,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
