"""Rows could be put into files of this machine that workers elsewhere, in containers or of other users, cannot open."""

import sys
from pathlib import Path
from typing import Any

import pytest

from pyhudi.engine.spark.read import one_machine
from tests.support.standalone_cluster import StandaloneCluster, run_driver

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "master, expected",
    [
        ("spark://127.0.0.1:7077", True),
        ("spark://127.1.2.3:7077", True),
        ("spark://localhost:7077", True),
        ("spark://LOCALHOST:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://localhost:7077,127.0.0.1:7078", True),
        ("spark://localhost:7077,head:7077", False),
        ("spark://10.0.0.1:7077", False),
        ("spark://localhost.example:7077", False),
        ("local-cluster[2,1,1024]", True),
        ("yarn", False),
        ("k8s://https://127.0.0.1:443", False),
        ("", False),
    ],
)
def test_only_a_master_that_no_other_machine_reaches_is_of_one_machine(master: str, expected: bool) -> None:
    assert one_machine.is_of_one_machine(master) is expected


def test_an_address_of_another_machine_is_not_here() -> None:
    assert one_machine._is_here("127.0.0.1")
    assert not one_machine._is_here("192.0.2.1")  # of documents: no machine has it
    assert not one_machine._is_here("no.such.host.invalid")


def test_a_session_of_another_kind_of_master_is_not_asked(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_machine, "_are_here", lambda spark: pytest.fail("the JVM was asked"))
    assert not one_machine.opens_our_files(spark, None)


@pytest.mark.long
@pytest.mark.parametrize("way", ["opened", "missing", "elsewhere"])
def test_slices_with_logs_are_read_on_a_cluster_of_one_machine(
    cluster: StandaloneCluster, tmp_path: Path, way: str
) -> None:
    printed = run_driver(__file__, cluster.master, str(tmp_path), way)
    files = printed.split("files: ")[1].split()
    assert bool(int(files[0])) is (way == "opened")
    assert not list((tmp_path / "put *[aside]").iterdir())


def main(master: str, folder: Path, way: str) -> None:
    """Random tables read on the cluster. `way`: what the executors see of files that this process writes."""
    from pyspark.sql import SparkSession

    from pyhudi.engine.spark.read import merge_design
    from tests.spark.test_merge_designs import assert_reads_apart, random_table

    patch = pytest.MonkeyPatch()
    patch.setattr(merge_design, "NATIVE_BYTES_MIN", 0)
    patch.setattr(merge_design, "LOG_SHARE_MAX", 1_000)
    patch.setattr(merge_design, "BASE_BYTES_A_BLOCK", 1)
    if way == "missing":

        def lines_of_missing(spark: Any, paths: list[Path]) -> int:
            """As in a container: the driver sees the files as it plans the job, and tasks do not."""
            split = spark.sparkContext._jsc.textFile(",".join(path.as_uri() for path in paths), len(paths))
            split.partitions()
            for path in paths:
                path.unlink()
            return int(split.count())

        patch.setattr(one_machine, "_lines", lines_of_missing)
    if way == "elsewhere":
        patch.setattr(one_machine, "_is_here", lambda host: False)
        patch.setattr(one_machine, "_lines", lambda spark, paths: pytest.fail("a job was run"))
    aside = folder / "put *[aside]"
    aside.mkdir()

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.executor.memory", "900m").config("spark.local.dir", str(aside)).getOrCreate()
    most = 0
    for seed, ordering in ((1, "ts"), (2, None), (3, "x")):
        table = random_table(folder / f"t{seed}", seed, ordering)
        assert_reads_apart(spark, table.scan())
        assert_reads_apart(spark, table.scan(columns=["n"], where="n > 50 and part = 'p1'"))
        frame = table.scan().to_spark(spark)
        most = max(most, len(list(aside.glob("pyhudi-rows-*/*.parquet"))))
        assert frame.count() == len(table.scan().to_arrow())
    assert one_machine._FOUND.reads == (
        {} if way == "elsewhere" else {spark.sparkContext.applicationId: way == "opened"}
    )
    print(f"files: {most}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
