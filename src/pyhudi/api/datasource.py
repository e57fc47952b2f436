"""PySpark's `hudi` format over `HudiTable`: options to calls, with the names that Apache Hudi's users know."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid
from pyhudi.model.options import merge_options
from pyhudi.model.read_options import read_request_from_options
from pyhudi.storage.open import open_storage, parse_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAME = "hoodie.table.name"
_WRITER_NAME = "hoodie.datasource.write.table.name"
_KEY = "hoodie.datasource.write.recordkey.field"
_PARTITION = "hoodie.datasource.write.partitionpath.field"
_ORDERING = ("hoodie.table.ordering.fields", "hoodie.datasource.write.precombine.field", "hoodie.table.precombine.field")
_OPERATION = "hoodie.datasource.write.operation"
_TYPE = "hoodie.datasource.write.table.type"
_VERSION = "hoodie.write.table.version"

_CALLS = ("upsert", "insert", "bulk_insert", "delete")


def load_table(spark: "SparkSession", path: str, options: Mapping[str, object]) -> "DataFrame":
    """`spark.read.format("hudi").options(...).load(path)`."""
    request = read_request_from_options(options)
    table = HudiTable.open(path)
    if request.query_type == "incremental":
        return table.incremental(request.start, request.end).to_spark(spark)
    return table.scan(as_of=request.as_of, query=request.query_type).to_spark(spark)


def save_dataframe(dataframe: "DataFrame", path: str, mode: str, options: Mapping[str, object]) -> None:
    """`df.write.format("hudi").options(...).mode(...).save(path)`.

    `append` writes to the table, made if need be; `overwrite` makes it anew; `ignore` and `error` as in Spark.
    """
    merged = merge_options(write=options, opened=None, table={})
    operation = merged.get(_OPERATION, "upsert").lower()
    if operation not in _CALLS:
        raise Invalid(f"{_OPERATION}='{operation}': this release writes {', '.join(_CALLS)}")
    exists = HudiTable.exists(path)
    match mode.lower():
        case "append":
            pass
        case "overwrite":
            if exists:
                _create(path, merged, check_only=True)
                open_storage(parse_location(path, None)).delete_prefix("")
                exists = False
        case "ignore":
            if exists:
                return
        case "error" | "errorifexists" | "default":
            if exists:
                raise Invalid(f"{path}: a table is here already; write with mode('append'), or 'overwrite' to make it anew")
        case _:
            raise Invalid(f"mode '{mode}': expected append, overwrite, ignore or errorifexists")
    table = HudiTable.open(path) if exists else _create(path, merged)
    writer_options = {k: v for k, v in merged.items() if k not in (_OPERATION, _WRITER_NAME)}
    getattr(table, operation)(dataframe, options=writer_options)
