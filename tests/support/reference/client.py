"""The near side: start the real Apache Hudi in a process of its own, and hand it Arrow tables.

with ReferenceHudi("1.2.0") as hudi:
    hudi.write(path, rows, operation="upsert", **{"hoodie.datasource.write.recordkey.field": "id"})
    hudi.read(path, **{"as.of.instant": "2026-11-21"})
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.reference.environment import (
    PROJECT,
    hudi_bundle,
    reference_java_home,
    reference_python,
)
from tests.support.spark_jvm import SHORT_LIVED_JAVA

ANSWER_WAIT_S = 600.0
STOP_WAIT_S = 30.0
LOG_TAIL_BYTES = 4_000
LOGGED_CAUSES_MAX = 5


class ReferenceFailed(Exception):
    """The far side refused or failed. `kind` is the class of its error."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind, self.text = kind, message
        super().__init__(f"{kind}: {message}")


class Worker:
    """A process with one Spark session that obeys JSON commands (`server.py`).

    It has a scratch folder, removed at the end, that holds its log, Spark's local files and what is
    handed to and fro. The process leads its own group, so that the end of it is the end of its JVM.
    """

    def __init__(
        self,
        python: Path,
        module: str,
        *,
        spark_settings: Mapping[str, str],
        java_home: str | None = None,
        python_path: Sequence[Path] = (),
        java_options: str = "",
    ) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="reference-"))
        self.log = self.scratch / "worker.log"
        for folder in ("spark", "tmp"):
            (self.scratch / folder).mkdir()
        settings = {
            "spark.master": "local[2]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.driver.extraJavaOptions": (
                f"-Duser.timezone=UTC -Djava.io.tmpdir={self.scratch / 'tmp'} {java_options}"
            ),
            "spark.local.dir": str(self.scratch / "spark"),
            "spark.sql.warehouse.dir": str(self.scratch / "warehouse"),
            **spark_settings,
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", module, json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.scratch,
                env=self._environment(python, java_home, python_path),
                start_new_session=True,
            )
        self._unread = b""
        try:
            self.about: dict[str, Any] = self._receive(ANSWER_WAIT_S)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, *, wait_s: float = ANSWER_WAIT_S, **arguments: Any) -> Any:
        """The value of a command. Raises: ReferenceFailed when it fails, dies or is too slow."""
        if self._process.poll() is not None:
            raise ReferenceFailed("WorkerDied", f"it ended with {self._process.returncode}.{self._log_tail()}")
        assert self._process.stdin is not None
        logged = self.log.stat().st_size
        line = json.dumps({"command": command, **arguments}) + "\n"
        with contextlib.suppress(BrokenPipeError):  # it died: the answer will say so
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        try:
            return self._receive(wait_s)
        except ReferenceFailed as failure:
            reasons = self._logged_reasons(logged)
            raise ReferenceFailed(failure.kind, failure.text + reasons) from None

    def close(self) -> None:
        """Stop the session, then whatever is left of the process group; remove the scratch folder."""
        if self._process.poll() is None:
            with contextlib.suppress(ReferenceFailed):
                self.ask("stop", wait_s=STOP_WAIT_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_WAIT_S)
        with contextlib.suppress(ProcessLookupError):  # the JVM and Spark's Python workers
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _environment(self, python: Path, java_home: str | None, python_path: Sequence[Path]) -> dict[str, str]:
        ours = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SPARK_", "PYSPARK_", "HADOOP_")) and name != "VIRTUAL_ENV"
        }
        ours["PYTHONPATH"] = os.pathsep.join(str(path) for path in (PROJECT, *python_path))
        ours["TZ"] = "UTC"
        ours["TMPDIR"] = str(self.scratch / "tmp")
        ours["SPARK_LOCAL_IP"] = "127.0.0.1"
        ours["PYSPARK_PYTHON"] = str(python)
        if java_home is not None:
            ours["JAVA_HOME"] = java_home
        return ours

    def _receive(self, wait_s: float) -> Any:
        line = self._read_line(wait_s)
        answer = json.loads(line)
        if "error" in answer:
            raise ReferenceFailed(answer["error"]["class"], answer["error"]["message"])
        return answer["value"]

    def _read_line(self, wait_s: float) -> bytes:
        assert self._process.stdout is not None
        pipe: IO[bytes] = self._process.stdout
        end = time.monotonic() + wait_s
        while b"\n" not in self._unread:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self._process.kill()  # its next answer would be taken for that of the next question
                raise ReferenceFailed("WorkerTooSlow", f"no answer within {wait_s:,.0f} s.{self._log_tail()}")
            piece = os.read(pipe.fileno(), 1 << 16)
            if not piece:
                raise ReferenceFailed("WorkerDied", f"it closed its output.{self._log_tail()}")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _logged_reasons(self, start: int) -> str:
        """The causes logged since: Apache Hudi often says only that a write failed."""
        with self.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        causes = list(dict.fromkeys(line.strip() for line in lines if line.startswith("Caused by:")))
        return "".join(f"\n  logged: {cause}" for cause in causes[:LOGGED_CAUSES_MAX])

    def _log_tail(self) -> str:
        tail = self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        return f" The end of its log:\n{tail}"


class ReferenceHudi:
    """Apache Hudi of one release (`HUDI_VERSIONS`) on Spark 3.5; starts at once, stops with `close`."""

    def __init__(self, version: str, *, spark_settings: Mapping[str, str] | None = None) -> None:
        self.version = version
        self.worker = Worker(
            reference_python(),
            "tests.support.reference.server",
            java_home=reference_java_home(),
            java_options=SHORT_LIVED_JAVA,
            spark_settings={
                "spark.driver.memory": "1500m",
                "spark.sql.shuffle.partitions": "2",
                "spark.default.parallelism": "2",
                **hudi_settings(version),
                **(spark_settings or {}),
            },
        )

    def read(self, path: str | Path, where: str | None = None, /, **options: object) -> pa.Table:
        """The rows that `spark.read.format("hudi").options(**options).load(path)` gives, meta fields too.

        `where` is a predicate of Spark SQL that the reader may push down.
        """
        stored = self.worker.ask("read", path=str(path), options=_texts(options), where=where)
        return self._fetch(stored)

    def write(
        self,
        path: str | Path,
        table: pa.Table,
        /,
        *,
        operation: str = "upsert",
        mode: str = "append",
        **options: object,
    ) -> None:
        """Write the rows with this write operation; the table's name is found or made up."""
        options = {
            "hoodie.table.name": _table_name(Path(path)),
            "hoodie.datasource.write.operation": operation,
            **options,
        }
        folder = Path(tempfile.mkdtemp(prefix="input-", dir=self.worker.scratch))
        pq.write_table(table, folder / "rows.parquet", coerce_timestamps="us")
        try:
            self.worker.ask("write", path=str(path), input=str(folder), options=_texts(options), mode=mode)
        finally:
            shutil.rmtree(folder)

    def schedule_index(self, path: str | Path, kind: str, /, **options: object) -> str:
        """Plan an index of the metadata table, such as `column_stats`. Returns the plan's requested time."""
        answer = self.worker.ask("schedule_index", path=str(path), kind=kind, options=_texts(options))
        assert isinstance(answer, str)
        return answer

    def run_index(self, path: str | Path, requested: str, /, **options: object) -> None:
        """Build what is planned at `requested`; the options say that such indexes are wanted."""
        self.worker.ask("run_index", path=str(path), requested=requested, options=_texts(options))

    def sql(self, text: str) -> pa.Table | None:
        """The rows of a statement, procedures (`CALL …`) too; None where it has no columns."""
        stored = self.worker.ask("sql", text=text)
        return None if stored is None else self._fetch(stored)

    def close(self) -> None:
        self.worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fetch(self, stored: Mapping[str, Any]) -> pa.Table:
        """Memory: the whole answer."""
        try:
            # Each file by itself: as one data set, folder names could add partition columns.
            parts = []
            for file in stored["files"]:
                with pq.ParquetFile(file) as opened:
                    parts.append(opened.read())
            return pa.concat_tables(parts)
        finally:
            shutil.rmtree(stored["folder"])


def hudi_settings(version: str) -> dict[str, str]:
    """What a Spark session needs to be Apache Hudi of this release."""
    return {
        # Not `spark.jars`: threads of Java's common pool would not see the bundle's classes, and when one of them is
        # the first to read a delete block of a log, Avro takes them for missing until the process ends
        # (ClassCastException to HoodieDeleteRecordList, Apache Hudi 1.0.2).
        "spark.driver.extraClassPath": str(hudi_bundle(version)),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    """Options as Spark takes them: true and false are written small."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def _table_name(path: Path) -> str:
    """The name in `hoodie.properties`, else that of the folder."""
    properties = path / ".hoodie" / "hoodie.properties"
    if properties.exists():
        for line in properties.read_text().splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "hoodie.table.name":
                return value.strip()
    return path.name.replace("-", "_")
