"""What the public surface needs of the engine on Spark.

Not in the package's `__init__`, which every task imports: tasks need little of it.
"""

from pyhudi.engine.spark.read import plan_to_dataframe
from pyhudi.engine.spark.session import spark_access
from pyhudi.engine.spark.staged_source import source_of

__all__ = ["plan_to_dataframe", "source_of", "spark_access"]
