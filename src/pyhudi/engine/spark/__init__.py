"""The engine on Spark: the only place that imports PySpark."""

from pyhudi.engine.spark.read import plan_to_dataframe
from pyhudi.engine.spark.session import spark_access
from pyhudi.engine.spark.source import SparkSource

__all__ = ["SparkSource", "plan_to_dataframe", "spark_access"]
