"""What a Spark Connect server must have beside Spark: this package in its Python, and the folders of local tables."""

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyhudi.errors import Invalid, NotFound, Unsupported
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation

_FACTS = ".hoodie/hoodie.properties"
_GLOB = frozenset("*?[]{}\\")
_LOOKS_MAX = 3
"""Of the file with a table's facts, which another writer may replace between two looks at it."""

_seen: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""What was found at the server of each session: tables' folders, and this package (an empty text)."""


def refuse_without_package(spark: SparkSession) -> None:
    """Refuse a server whose Python does not have this package. One job, once per session. Raises: Unsupported."""
    known = _seen.setdefault(spark, set())
    if "" in known:
        return

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib
        import sys

        import pyarrow

        found = ""
        try:
            importlib.import_module("pyhudi")
        except ImportError as error:
            found = f"{sys.executable}: {error}"
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"found": [found]})

    missing = spark.range(0, 1, 1, 1).mapInArrow(look, "found string").collect()[0]["found"]
    if missing:
        raise Unsupported(
            f"the Python of the Spark Connect server cannot import pyhudi ({missing}): its tasks, streams and "
            "foreachBatch run there; install the same version of pyhudi for it, or set PYSPARK_PYTHON of the server "
            "to a Python that has it"
        )
    known.add("")


def refuse_unseen(spark: SparkSession, location: StorageLocation) -> None:
    """Refuse a local table that the server does not see under the same path. One job, once per session and table.

    Raises: Invalid. A folder without a table is passed over.
    """
    path = location.uri
    known = _seen.setdefault(spark, set())
    if "://" in path or path in known or _GLOB & set(path):
        return
    here, there = None, None
    for _ in range(_LOOKS_MAX):
        try:
            here = open_storage(location).get(_FACTS).decode()
        except NotFound:
            return
        there = _text_at_server(spark, f"file://{path}/{_FACTS}")
        if there is None or there == here:
            break
    if there != here:
        found = "nothing" if there is None else "another table"
        raise Invalid(
            f"{path}: expected a folder that this process and the Spark Connect server both see, found {found} there "
            "on the server: this process plans and commits, the server reads and writes files; use a shared disk "
            "under the same path, or an object store"
        )
    known.add(path)


def _text_at_server(spark: SparkSession, uri: str) -> str | None:
    """The text of a file as the server reads it, or None where there is none."""
    try:
        rows: Any = spark.read.text(uri, wholetext=True).collect()
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    return str(rows[0]["value"]) if rows else None
