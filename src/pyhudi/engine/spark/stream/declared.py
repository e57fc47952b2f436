"""The columns that a stream began with, which its batches keep."""

from pyspark.sql import types as t

from pyhudi.errors import Unsupported


def refuse_other_types(found: t.StructType, declared: t.StructType, shown: str) -> None:
    """Raises: Unsupported where a column has another type now than when the query began. `shown`: the source."""
    now = {field.name: field.dataType.simpleString() for field in found.fields}
    for field in declared.fields:
        was, is_now = field.dataType.simpleString(), now.get(field.name, "no such column")
        if is_now != was:
            raise Unsupported(
                f"{shown}: column '{field.name}' was {was} when the query began, and is {is_now} now; start the query "
                "again, with the same checkpoint"
            )
