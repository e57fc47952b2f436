"""What the public surface needs of the engine on Spark.

Not in the package's `__init__`, which every task imports: tasks need little of it.
"""

from pyhudi.engine.spark.executor import SparkExecutor
from pyhudi.engine.spark.read.changes import changes_to_dataframe
from pyhudi.engine.spark.read.metadata_records import records_to_dataframe
from pyhudi.engine.spark.read.scan import plan_to_dataframe
from pyhudi.engine.spark.session import session_access, session_of, spark_access
from pyhudi.engine.spark.slice_work import SparkSliceWork
from pyhudi.engine.spark.write.source_rows import dataframe_of_source
from pyhudi.engine.spark.write.staged_source import source_of
from pyhudi.engine.spark.write.staging import runs_on_this_machine

__all__ = [
    "SparkExecutor",
    "SparkSliceWork",
    "changes_to_dataframe",
    "dataframe_of_source",
    "plan_to_dataframe",
    "records_to_dataframe",
    "runs_on_this_machine",
    "session_access",
    "session_of",
    "source_of",
    "spark_access",
]
