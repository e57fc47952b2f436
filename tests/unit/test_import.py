"""`import pyhudi` could be slow, or pull in an engine that the user does not have.

It runs in a fresh interpreter, which reports how long the import took and what came with it.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCE_DIR = Path(__file__).parents[2] / "src"
SECONDS_MAX = 1.0
TRIES = 4  # the first may read from a cold disk or write bytecode; the best one counts

PROBE = """
import json, sys, time
start = time.process_time()      # other work on the machine must not count
import pyhudi
seconds = time.process_time() - start
tops = {name.partition(".")[0] for name in sys.modules}
print(json.dumps({"seconds": seconds, "modules": sorted(tops), "file": pyhudi.__file__}))
"""


def run_probe(program: str = PROBE) -> dict[str, object]:
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE_DIR)},
    )
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize("module", ["pyspark", "py4j", "pandas", "obstore", "fsspec"])
def test_import_brings_no_engine(module: str) -> None:
    modules = run_probe()["modules"]

    assert isinstance(modules, list)
    assert "pyhudi" in modules
    assert module not in modules


ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
"""


def test_import_works_where_pyspark_and_pandas_are_absent() -> None:
    assert run_probe(ABSENT + PROBE)["file"] == str(SOURCE_DIR / "pyhudi" / "__init__.py")


def test_import_takes_less_than_a_second() -> None:
    seconds = []
    for _ in range(TRIES):
        seconds.append(float(str(run_probe()["seconds"])))
        if seconds[-1] < SECONDS_MAX:
            return
    pytest.fail(f"import pyhudi took {min(seconds):.2f} s at best, at most {SECONDS_MAX} s")


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed")
def test_a_spark_worker_that_stages_rows_does_without_the_compiler() -> None:
    """Each fresh worker would take a third of a second for it."""
    modules = run_probe(PROBE.replace("import pyhudi\n", "import pyhudi\nimport pyhudi.engine.spark.write.staging\n"))[
        "modules"
    ]

    assert isinstance(modules, list)
    assert "pyspark" in modules
    assert "numba" not in modules


CASTS = """
import pyarrow as pa
from pyhudi import HudiTable, Unsupported
table = HudiTable.create("memory://casts", name="casts", record_key="id")
table.insert(pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int32()), "x": [0.5, 2.5]}))
assert table.scan(where="n = '2'").count() == 1
assert table.scan(where="CAST(x AS INT) = 2").count() == 1
try:
    table.scan().to_pandas()
except Unsupported as error:
    assert "pip install pandas" in str(error)
"""


def test_casts_do_without_pandas() -> None:
    """PyArrow before 26 asks pandas for the NumPy type of a type."""
    run_probe(ABSENT + PROBE.replace("import pyhudi\n", "import pyhudi\n" + CASTS))


def test_a_task_that_reads_files_without_logs_does_without_compiler_pandas_and_parser() -> None:
    """Each Python worker of Spark would take a second for them, again after each minute of idleness."""
    modules = run_probe(PROBE.replace("import pyhudi\n", "import pyhudi\nimport pyhudi.table.read.files\n"))["modules"]

    assert isinstance(modules, list)
    assert "pyarrow" in modules
    assert not {"numba", "llvmlite", "pandas", "sqlglot", "pyspark"} & {*modules}


FEW_ROWS = """
import tempfile
import pyarrow as pa
import pyhudi
for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
    with tempfile.TemporaryDirectory() as folder:
        table = pyhudi.HudiTable.create(
            folder + "/table", name="few", record_key="id", ordering="ts", table_type=table_type
        )
        table.upsert(pa.table({"id": ["a", "b"], "ts": [1, 1]}))
        table.upsert(pa.table({"id": ["a"], "ts": [2]}))
        assert sorted(table.scan().to_arrow()["ts"].to_pylist()) == [1, 2]
"""


def test_a_process_that_writes_and_reads_few_rows_does_without_the_compiler() -> None:
    """It would take twice the time, a hundred megabytes more, and ten seconds after an installation."""
    modules = run_probe(PROBE.replace("import pyhudi\n", FEW_ROWS))["modules"]

    assert isinstance(modules, list)
    assert "pyhudi" in modules
    assert not {"numba", "llvmlite", "sqlglot", "obstore"} & {*modules}
