"""The name under which PySpark's readers and writers know Hudi tables."""

FORMATS = frozenset({"hudi", "org.apache.hudi"})


def is_hudi(source: object) -> bool:
    """Whether a format's name is that of Hudi. Upper and lower case are the same, as in Spark."""
    return isinstance(source, str) and source.lower() in FORMATS
