"""Compactions of a merge-on-read table, beside the stream that writes to it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.api.service_calls.process import run
from pyhudi.api.table import HudiTable
from pyhudi.options.resolve import without_operation
from pyhudi.options.values import OptionValues
from pyhudi.services.after_commit import SERVICES_ENABLED, AfterCommitSettings
from pyhudi.spark.streams.ending import WORK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("pyhudi")


class CompactionBeside:
    """Compacts a table when that is due, on a thread of its own, one compaction at a time.

    Tables whose writes compact by themselves are left alone. A failure is only logged, and tried again after the next
    batch. A process that ends carries out what has begun. What is due beyond that is carried out by the next one.
    """

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        self._path = path
        self._options = without_operation(options)
        self._is_off = not OptionValues(options).flag(SERVICES_ENABLED, True)
        self._thread: threading.Thread | None = None

    def start(self, spark: SparkSession | None) -> None:
        """Begin to compact, if that is due and nothing runs. `spark`: None: in this process."""
        if self._is_off or (self._thread is not None and self._thread.is_alive()):
            return
        table = HudiTable.open(self._path)
        merged = {**table.properties, **self._options}
        if table.table_type != "MERGE_ON_READ" or AfterCommitSettings.from_options(merged).compaction.is_inline:
            self._is_off = True
            return
        self._thread = threading.Thread(target=self._run, args=(table, spark), name="pyhudi compaction", daemon=True)
        self._thread.start()

    def _run(self, table: HudiTable, spark: SparkSession | None) -> None:
        try:
            with WORK.held(f"{self._path}: a compaction beside a stream") as begins:
                if begins:
                    run(table, services=["compaction"], options=self._options, once=True, spark=spark)
        except Exception as error:  # of any kind: nobody waits for this thread
            log.warning("%s: the compaction beside a stream failed: %s", self._path, error)
