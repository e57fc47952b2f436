"""The data source `hudi` of a Connect session: it lets the catalog keep entries of Hudi tables, and reads streams.

Spark asks for the source of each name, so that a table by name can be neither read nor written around pyhudi.
"""

from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

_known: WeakSet[SparkSession] = WeakSet()


def know_format(spark: SparkSession) -> None:
    """Tell the server of the format, once per session."""
    if spark not in _known:
        spark.dataSource.register(HudiFormat)
        _known.add(spark)


class HudiFormat(DataSource):
    """Tables of the format: their batches are read and written by the client, which plans and commits."""

    @classmethod
    def name(cls) -> str:
        return "hudi"

    def schema(self) -> Any:
        raise refusal()

    def reader(self, schema: Any) -> Any:
        raise refusal()

    def writer(self, schema: Any, overwrite: bool) -> Any:
        raise refusal()


def refusal() -> Exception:
    from pyhudi.errors import Unsupported

    return Unsupported(
        "the server cannot read or write Hudi tables by itself: pyhudi plans and commits in the client, and "
        "understands names in FROM and JOIN of spark.sql(text), spark.table(name), INSERT, UPDATE, DELETE and MERGE; "
        "elsewhere use spark.read.format('hudi').load(path)"
    )
