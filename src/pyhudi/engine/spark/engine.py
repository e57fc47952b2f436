"""What the public surface needs of the engine on Spark.

Not in the package's `__init__`, which every task imports: tasks need little of it.
"""

from pyhudi.engine.spark.read import plan_to_dataframe
from pyhudi.engine.spark.session import spark_access
from pyhudi.engine.spark.source import SparkSource

__all__ = ["SparkSource", "plan_to_dataframe", "spark_access"]
