"""Classes of the driver's JVM by their full names, and sequences of its objects.

`spark._jvm.org.apache...` asks the JVM about each part of a name: six calls before the call that is wanted.
"""

from typing import Any

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """The class of this name, for its constructor and its static members. Needs the gateway to the driver's JVM.

    A name that no class has fails only when it is used.
    """
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    return JavaClass(name, gateway._gateway_client)


def elements(sequence: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [sequence.apply(at) for at in range(sequence.size())]
