"""A quiet Spark on this machine: two cores, no page, no log on the screen."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

JAVA_MIN = 17
SHORT_RUN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A run of a minute or two does not earn back what the JVM's second compiler costs."""

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


class SparkMissing(Exception):
    """Spark cannot run here. The text says what to do."""


@contextmanager
def spark_session(work: Path) -> Iterator[SparkSession]:
    """A session whose leftovers and log (`spark.log`) lie in the folder `work`. Raises: SparkMissing."""
    require_java()
    work.mkdir(parents=True, exist_ok=True)
    log = work / "spark.log"
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark looks this machine's name up
    log_settings = f'"-Dlog4j2.configurationFile={LOG_SETTINGS.resolve().as_uri()}"'
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"{SHORT_RUN} {log_settings}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str((work / "warehouse").resolve()),
    }
    builder = SparkSession.builder.master("local[2]").appName("pyhudi demo")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _stderr_to(log):  # the JVM keeps what it is started with
            spark = builder.getOrCreate()
    except Exception as error:
        raise SparkMissing(f"Spark did not start ({type(error).__name__}); {log} says why") from error
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def require_java() -> None:
    """Refuse to go on without a Java that runs Spark. Raises: SparkMissing."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    wanted = f"Spark needs Java {JAVA_MIN} or newer"
    how = "`make demo` finds one or says how to get it, and JAVA_HOME names one that lies elsewhere"
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise SparkMissing(f"{wanted}, and there is none {where}; {how}")
    version = _java_version(java)
    if version is None or version < JAVA_MIN:
        raise SparkMissing(f"{wanted}, and {java} is {'no Java' if version is None else f'Java {version}'}; {how}")


def _java_version(java: str) -> int | None:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Programs that start while this lasts write their errors to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
