"""Python workers that begin warm: the module for Spark's setting `spark.python.daemon.module`.

Spark ends Python workers that had nothing to do for a minute, and starts new ones as forks of a process on each
executor, its daemon. Each then imports pyarrow, pandas and pyhudi, while a small write waits. This daemon has imported
them before it forks.

Spark runs it as `python -m pyhudi.engine.spark.daemon WORKER_MODULE`, and reads from its standard output where it
listens.
"""

import contextlib
import gc
import importlib
import sys
from collections.abc import Sequence

from pyspark.daemon import manager

_USED_BY_TASKS = (
    "numpy", "pandas", "pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet", "pyspark.sql.pandas.serializers",
    "pyspark.worker", "pyhudi.loops.compiling", "pyhudi.engine.local.sent_groups", "pyhudi.engine.spark.executor",
    "pyhudi.engine.spark.read.merged", "pyhudi.engine.spark.slice_work", "pyhudi.engine.spark.write.keys",
    "pyhudi.engine.spark.write.source_rows", "pyhudi.engine.spark.write.staging", "pyhudi.engine.spark.write.task",
)  # fmt: skip
"""No module that starts threads when it is imported: a fork has none of them."""


def preload(worker_module: Sequence[str]) -> None:
    """Import what tasks of writes, reads and services use. What is not installed is left out: the task says so."""
    with contextlib.redirect_stdout(sys.stderr):
        for name in (*_USED_BY_TASKS, *worker_module):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the pages of all that was imported


if __name__ == "__main__":
    preload(sys.argv[1:2])
    manager()
