"""The daemon could print where Spark expects a port, hand its forks nothing, or outlive the executor."""

import os
import struct
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")


def test_it_speaks_as_sparks_own_and_ends_with_its_executor() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pyhudi.engine.spark.daemon", "pyspark.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as daemon:  # fmt: skip
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        (port,) = struct.unpack("!i", daemon.stdout.read(4))
        assert 0 < port < 65_536

        daemon.stdin.close()
        daemon.wait(60)


def test_all_that_tasks_use_is_there() -> None:
    code = (
        "import sys\n"
        "from pyhudi.engine.spark.daemon import _USED_BY_TASKS, preload\n"
        "preload(['pyspark.worker'])\n"
        "import threading\n"
        "print([name for name in _USED_BY_TASKS if name not in sys.modules], threading.active_count())"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] 1", done.stderr
