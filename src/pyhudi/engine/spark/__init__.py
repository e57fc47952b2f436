"""The engine on Spark: the only place that imports PySpark."""
