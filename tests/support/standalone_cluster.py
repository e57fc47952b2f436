"""A standalone Spark of one master and two workers on this machine, started from PySpark's own package."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_PACKAGE = "org.apache.spark.deploy"
_START_WAIT_S = 120.0
_WEB = ["--webui-port", "0"]


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """`master`: its URL. `pids`: of the master and the workers, whose children are the executors."""

    master: str
    pids: tuple[int, ...]


@contextmanager
def standalone_cluster(
    folder: Path, pyspark_home: Path, environment: Mapping[str, str], *, worker_memory: str = "1500M"
) -> Iterator[StandaloneCluster]:
    """Two workers of a core each. `folder`: for logs and what executors put aside. `environment`: of all processes."""
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    settings = {**environment, "SPARK_HOME": str(pyspark_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    commands = [[f"{_PACKAGE}.master.Master", "--host", "127.0.0.1", "--port", str(port), *_WEB]]
    for at in (1, 2):
        place = ["--work-dir", str(folder / f"work{at}"), "--host", "127.0.0.1", *_WEB]
        commands.append([f"{_PACKAGE}.worker.Worker", "--cores", "1", "--memory", worker_memory, *place, url])

    with ExitStack() as stack:
        pids = []
        for at, command in enumerate(commands):
            log = stack.enter_context(open(folder / f"log{at}", "w"))
            process = subprocess.Popen(
                [str(pyspark_home / "bin" / "spark-class"), *command],
                env=settings,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            stack.callback(_stop, process)
            pids.append(process.pid)
            if at == 0:
                _wait_for(folder / "log0", "New state: ALIVE")
        _wait_for(folder / "log0", "Registering worker", count=2)
        yield StandaloneCluster(url, tuple(pids))


@contextmanager
def cluster_of_tests(folder: Path) -> Iterator[StandaloneCluster]:
    """A cluster of this interpreter's PySpark, whose workers run this interpreter and find pyhudi."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(_ROOT / "src")}
    with standalone_cluster(folder, Path(spec.origin).parent, environment) as cluster:
        yield cluster


def driver_environment() -> dict[str, str]:
    """Of a driver in a process of its own, which finds pyhudi and these tests."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), str(_ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run_driver(script: str, *arguments: str) -> str:
    """What a script prints as a driver in a process of its own. It must succeed."""
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env=driver_environment(),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(log: Path, text: str, *, count: int = 1) -> None:
    ends = time.monotonic() + _START_WAIT_S
    while not log.exists() or log.read_text().count(text) < count:
        assert time.monotonic() < ends, f"no '{text}' in {log}: {log.read_text()[-2_000:]}"
        time.sleep(0.3)


def _stop(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
