"""Spark Connect has no gateway to the JVM: whatever reaches for one would fail there, or give no rows.

One server for all tests here, which PySpark's own jars start. The clients are processes of their own, for classic and
Connect sessions do not mix in one.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi import HudiTable
from tests.support.connect_server import ROOT, ConnectServer, client_environment, missing_packages
from tests.support.streams import AS_ARROW, ids_in, stored_batches

MISSING = missing_packages()

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        bool(MISSING), reason=f"Spark Connect needs {', '.join(MISSING)}: pip install 'pyspark[connect]'"
    ),
]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as server:
        yield server


def run_cases(server: ConnectServer, *arguments: str, timeout_s: int = 300) -> str:
    """What pytest says of tests that run as a client of the server."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *arguments],
        env=client_environment(server.remote), cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6_000:] + server.log()
    return done.stdout


CASES = "tests/spark/connect_cases.py"


def test_a_client_sees_names_rows_and_refusals(server: ConnectServer) -> None:
    """The cases of every change: statements, and what is refused."""
    assert " passed" in run_cases(server, CASES, "-k", "statements or cannot_be or only_the_client")


@pytest.mark.long
def test_a_client_sees_streams_views_and_other_clients(server: ConnectServer) -> None:
    assert " passed" in run_cases(
        server, CASES, "-m", "", "-k", "a_stream_stores or not test_statements", timeout_s=900
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    ["statements", "merge", "merge_calls", "merge_frames", "names", "texts", "procedures", "inspection", "quick_start"],
)
def test_sql_of_classic_sessions_runs_on_connect(server: ConnectServer, name: str) -> None:
    """But for `CREATE VIEW` of a table function, which only classic sessions have."""
    known = "not test_table_functions_go_by_name_and_path_and_stand_anywhere"
    assert " passed" in run_cases(server, f"tests/spark/test_sql_{name}.py", "-k", known, timeout_s=1_800)


STREAM = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
import pyhudi.spark
from tests.support.streams import SCHEMA, writer
folder = Path(sys.argv[1])
spark = SparkSession.builder.remote(os.environ["PYHUDI_TEST_REMOTE"]).getOrCreate()
pyhudi.spark.register(spark)
rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
query = writer(rows, folder / "c", hoodie__datasource__write__operation="insert").start(str(folder / "t"))
print("started", flush=True)
assert query.awaitTermination(240)
assert query.exception() is None, query.exception()
"""


def feed(folder: Path, files: int) -> None:
    import pyarrow.parquet as pq

    from tests.support.streams import rows

    (folder / "in").mkdir()
    for at in range(files):
        pq.write_table(rows(range(at * 3, at * 3 + 3)).cast(AS_ARROW), folder / "in" / f"{at:04}.parquet")


def start_stream(server: ConnectServer, folder: Path) -> subprocess.Popen[bytes]:
    """A client's process, which says to a file what is wrong."""
    with (folder / "client").open("wb") as told:
        return subprocess.Popen(
            [sys.executable, "-c", STREAM, str(folder)],
            env=client_environment(server.remote), cwd=ROOT, stdout=told, stderr=told,
        )  # fmt: skip


def wait_for_batches(table: Path, count: int, server: ConnectServer) -> None:
    deadline = time.monotonic() + 120
    while not HudiTable.exists(table) or len(stored_batches(table)) < count:
        assert time.monotonic() < deadline, (table.parent / "client").read_text()[-3_000:] + server.log()
        time.sleep(0.1)


@pytest.mark.long
def test_every_row_is_stored_once_though_client_and_server_die(tmp_path: Path) -> None:
    """The rows are inserted, so that a batch that is stored twice would show. The server goes on when its client has
    died; after it has died itself, another server and another client go on from the checkpoint."""
    files = 6
    feed(tmp_path, files)
    with ConnectServer(tmp_path / "server") as server:
        client = start_stream(server, tmp_path)
        try:
            wait_for_batches(tmp_path / "t", 1, server)
        finally:
            client.kill()
            client.wait()
        wait_for_batches(tmp_path / "t", 2, server)
        server.kill()

        server.start()
        assert start_stream(server, tmp_path).wait(300) == 0, (tmp_path / "client").read_text()[-3_000:] + server.log()

    assert ids_in(tmp_path / "t") == list(range(files * 3))
    assert [number for _, number in stored_batches(tmp_path / "t")] == list(range(files))


BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "pyhudi":
            raise ModuleNotFoundError("No module named 'pyhudi'")
sys.meta_path.insert(0, Blocker())
"""

BARE = """
import json, os, sys
from pyspark.sql import SparkSession
import pyhudi, pyhudi.spark
spark = SparkSession.builder.remote(os.environ["PYHUDI_TEST_REMOTE"]).getOrCreate()
pyhudi.spark.register(spark)
told = []
def ask(call):
    try:
        call()
    except pyhudi.Unsupported as error:
        told.append(str(error))
path = sys.argv[1]
table = pyhudi.HudiTable.create(path, name="t", record_key="id")
ask(lambda: table.upsert(spark.range(3)))
table.insert(spark.range(3).toArrow())
ask(lambda: spark.readStream.format("hudi").load(path))
ask(lambda: spark.readStream.format("rate").load().writeStream.format("hudi").option("checkpointLocation", path + "-c")
    .start(path))
spark.sql(f"CREATE TABLE named USING hudi LOCATION '{path}'")
print(json.dumps([told, spark.table("named").count()]))
"""


@pytest.mark.long
def test_a_server_without_pyhudi_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(BLOCKER)
    with ConnectServer(tmp_path / "server", sources=str(tmp_path / "site")) as server:
        done = subprocess.run(
            [sys.executable, "-c", BARE, str(tmp_path / "t")],
            env=client_environment(server.remote), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr[-4_000:] + server.log()
    told, count = json.loads(done.stdout.splitlines()[-1])
    assert count == 3
    assert len(told) == 3
    assert all("the Spark Connect server cannot import pyhudi" in text for text in told)
