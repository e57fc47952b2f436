"""Whether the workers of a cluster run on this machine and open the files of this process: a standalone Spark for one
machine, such as `spark://localhost:7077`. What Spark reads there can lie in files, as with a `local` master.

The master's address must be one that no other machine can reach, and all executors must have addresses of this machine.
Even so they may be in containers, or belong to another user, so a job looks whether they can read a file.
"""

import ipaddress
import re
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from pyhudi.engine.spark.java import elements
from pyhudi.engine.spark.read.base_files import hadoop_uri, without_globs
from pyhudi.engine.spark.session import core_count, is_classic
from pyhudi.storage.scratch import ScratchFolder

_TASKS_A_CORE: Final = 2
_TASKS_MAX: Final = 64


@dataclass
class _Found:
    """What was found of each application of this process, by its id."""

    reads: dict[str, bool] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_FOUND: Final = _Found()


def opens_our_files(spark: SparkSession, parent: str | None) -> bool:
    """Whether all executors of this session's cluster run on this machine, and read files that this process writes.

    `parent`: the folder that such files are made in; None: the system's one for temporary files.
    Cost: a question to the JVM. The first time a job of two tasks for each core, of at most 64.
    """
    if not (is_classic(spark) and is_of_one_machine(spark.sparkContext.master or "")):
        return False
    application = spark.sparkContext.applicationId
    with _FOUND.lock:
        if application not in _FOUND.reads:
            if not _are_here(spark):
                return False
            _FOUND.reads[application] = _read_by_tasks(spark, parent)
    return _FOUND.reads[application] and _are_here(spark)


def is_of_one_machine(master: str) -> bool:
    """Whether a master's URL names only addresses at which no other machine finds it.

    Example: `spark://127.0.0.1:7077`, `spark://localhost:7077`, and Spark's own `local-cluster[2,1,1024]`.
    """
    if master.startswith("local-cluster["):
        return True
    if not master.startswith("spark://"):
        return False
    return all(_is_loopback(address) for address in master.removeprefix("spark://").split(","))


def _is_loopback(address: str) -> bool:
    """`address`: of a host and its port, such as `[::1]:7077`."""
    host = urlsplit(f"//{address}").hostname or ""
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _are_here(spark: SparkSession) -> bool:
    """Whether the driver and every executor that Spark knows have addresses of this machine."""
    known: Any = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keySet().toSeq()
    return all(_is_here(re.sub(r":\d+$", "", address).strip("[]")) for address in elements(known))


def _is_here(host: str) -> bool:
    """Whether an address or a name is this machine's: a socket can be bound to it."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as one:
                one.bind(address)
    except OSError:
        return False
    return True


def _read_by_tasks(spark: SparkSession, parent: str | None) -> bool:
    """Whether tasks read files of this process: a task for each, so that every executor has some."""
    count = min(_TASKS_A_CORE * core_count(spark), _TASKS_MAX)
    scratch = ScratchFolder.make("pyhudi-rows-", parent, setting="spark.local.dir")
    try:
        paths = [scratch.path / f"{number:02d}" for number in range(count)]
        for path in paths:
            path.write_text("one line\n")
        return "," not in str(scratch.path) and _lines(spark, paths) == count
    except Py4JJavaError:
        return False
    finally:
        scratch.discard()


def _lines(spark: SparkSession, paths: list[Path]) -> int:
    """The lines of these files. Spark takes patterns of paths, with commas between."""
    named = ",".join(without_globs(hadoop_uri(path)) for path in paths)
    return int(spark.sparkContext._jsc.textFile(named, len(paths)).count())
