"""Arrow rows of the driver as Parquet files that every task can open, which Spark's own reader scans.

They lie on this machine, if Spark and all its workers run here, or in a folder that the user says all machines of a
cluster share.

A column that a query does not name costs nothing. Rows in the JVM would cost what all of their columns do.
A file stays as long as a plan in the JVM may scan it.
"""

import atexit
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.read.base_files import hadoop_uri
from pyhudi.engine.spark.read.file_index import scan_known_files
from pyhudi.engine.spark.read.one_machine import opens_our_files
from pyhudi.engine.spark.schema import arrow_schema, spark_schema
from pyhudi.engine.spark.session import core_count, is_classic
from pyhudi.engine.spark.write.staging import runs_on_this_machine, scratch_folder
from pyhudi.errors import Invalid
from pyhudi.format.leaf_bounds import leaves_with_bounds
from pyhudi.storage.scratch import ScratchFolder

FILES_BYTES_MAX: Final = 2 << 30
"""The most bytes of all files of a process. Rows beyond it are not written to files."""

SHARED_FOLDER: Final = "spark.pyhudi.shared.dir"
"""The setting of a session that names a folder which the driver and all workers see under the same path."""

KEPT_S: Final = 600.0
"""Seconds that a file stays at least, because a running job may read it when its plan is gone already."""


@dataclass(eq=False)
class _Kept:
    """Files that a plan may scan. `scan`: a weak reference in the JVM to an object that only such plans refer to."""

    folder: ScratchFolder
    size_bytes: int
    written_s: float
    jvm: Any
    scan: Any

    def may_go(self, jvm: Any, now_s: float) -> bool:
        if self.jvm is not jvm:
            return True
        return now_s - self.written_s >= KEPT_S and bool(self.scan.refersTo(None))


@dataclass(eq=False)
class _Files:
    """The files of this process, over all of its sessions."""

    kept: list[_Kept] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def sweep(self, jvm: Any, now_s: float) -> int:
        """Delete files that no plan can scan any more. Returns the bytes of those that are left."""
        with self.lock:
            going = [one for one in self.kept if one.may_go(jvm, now_s)]
            for one in going:
                one.folder.discard()
                self.kept.remove(one)
            return sum(one.size_bytes for one in self.kept)

    def keep(self, one: _Kept) -> None:
        with self.lock:
            self.kept.append(one)

    def delete(self) -> None:
        for one in self.kept:
            one.folder.discard()


_OWN: Final = _Files()
atexit.register(_OWN.delete)


def takes_files(spark: SparkSession, size_bytes: int) -> bool:
    """Whether files of so many bytes may be written for this session: its tasks can open them, and they fit."""
    if not (runs_on_this_machine(spark) or _shared_folder(spark) or opens_our_files(spark, scratch_folder(spark))):
        return False
    return _OWN.sweep(spark._jvm, time.monotonic()) + size_bytes <= FILES_BYTES_MAX


def _shared_folder(spark: SparkSession) -> Path | None:
    """What `SHARED_FOLDER` names; None if it names nothing. Raises: Invalid for what is no folder's absolute path."""
    named = spark.conf.get(SHARED_FOLDER, "") if is_classic(spark) else ""
    if not named:
        return None
    if not (Path(named).is_absolute() and Path(named).is_dir()):
        raise Invalid(
            f"'{SHARED_FOLDER}': expected the absolute path of a folder that the driver and all workers share, found "
            f"'{named}', {'which is no folder here' if Path(named).is_absolute() else 'which is relative'}; make or "
            "mount it on every machine, or leave the setting out"
        )
    return Path(named)


def _folder(spark: SparkSession) -> ScratchFolder:
    """A new folder for files, where tasks can open them. Drivers of other machines are told apart by the host's name:
    a lock of theirs may be invisible here.

    Raises: Invalid where none can be made.
    """
    shared = None if runs_on_this_machine(spark) else _shared_folder(spark)
    if shared is None:
        return ScratchFolder.make("pyhudi-rows-", scratch_folder(spark), setting="spark.local.dir")
    own = shared / socket.gethostname()
    try:
        own.mkdir(exist_ok=True)
    except OSError as error:
        raise Invalid(
            f"'{SHARED_FOLDER}': expected a folder that this process may write to, found that none can be made in "
            f"'{shared}': {error.strerror or error}; name another, or leave the setting out"
        ) from error
    return ScratchFolder.make("pyhudi-rows-", str(own), setting=SHARED_FOLDER)


def file_dataframe(spark: SparkSession, rows: pa.Table, options: dict[str, str]) -> DataFrame:
    """The rows as a native scan with these options of Spark's Parquet reader. There is a file for each core.

    Disk: about the rows' bytes, in Spark's folder for spilled data or the shared one, until no DataFrame of these rows
    is left.
    """
    schema = spark_schema(rows.schema)
    fitting = rows.cast(arrow_schema(schema))
    bounds = leaves_with_bounds(fitting, is_whole=True)
    share = max(1, -(-len(fitting) // core_count(spark)))

    def write(folder: Path, start: int) -> tuple[str, int]:
        path = folder / f"{start:012d}.parquet"
        part = fitting.slice(start, share)
        pq.write_table(part, path, compression="none", use_dictionary=False, write_statistics=bounds)
        return hadoop_uri(path), path.stat().st_size

    with KeptFiles(spark) as kept:
        files = LocalExecutor().run(lambda start: write(kept.folder, start), range(0, len(fitting), share))
        scan = scan_known_files(spark, files, schema, options)
        kept.keep(scan, sum(size_bytes for _, size_bytes in files))
    return scan


class KeptFiles:
    """A folder for files that a scan will read. It stays as long as a plan may need the scan; without one it goes."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._scratch = _folder(spark)
        self._entry: _Kept | None = None

    @property
    def folder(self) -> Path:
        return self._scratch.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._entry is None:
            self._scratch.discard()

    def keep(self, scan: DataFrame, size_bytes: int) -> None:
        """Keep the files, because the scan reads them.

        `size_bytes`: of all files. `scan`: made by `scan_known_files`.
        """
        columns = scan._jdf.queryExecution().analyzed().relation().dataSchema()  # an object of this relation alone
        seen = java_class(self._spark, "java.lang.ref.WeakReference")(columns)
        self._entry = _Kept(self._scratch, size_bytes, time.monotonic(), self._spark._jvm, seen)
        _OWN.keep(self._entry)

    def grow(self, size_bytes: int) -> None:
        """Note that the files have grown by so many bytes since `keep`."""
        assert self._entry is not None
        self._entry.size_bytes += size_bytes
        self._entry.written_s = time.monotonic()
