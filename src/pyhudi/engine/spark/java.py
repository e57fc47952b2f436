"""Classes of the driver's JVM by their full names.

`spark._jvm.org.apache...` asks the JVM at each part of a name what it is: six calls before the one that is meant.
"""

from typing import Any

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """The class, to be constructed, or asked for what is static; needs the gateway to the driver's JVM.

    A name that is none fails as it is used.
    """
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    return JavaClass(name, gateway._gateway_client)
