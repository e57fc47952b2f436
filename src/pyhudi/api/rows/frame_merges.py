"""Merges whose source is a Spark DataFrame: carried out by SQL on Spark, which is a floor above this one."""

from typing import TYPE_CHECKING, Any, Protocol

from pyhudi.api.writes import WriteCall
from pyhudi.errors import Unsupported
from pyhudi.write.operation import WriteResult
from pyhudi.write.rows.clauses import MergeClauses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyhudi.api.table import HudiTable


class CarryMerge(Protocol):
    """Carries a merge out. Arguments: as of `HudiTable.merge`; `aliases`: of source and table."""

    def __call__(
        self,
        table: "HudiTable",
        source: "DataFrame",
        on: Any,
        clauses: MergeClauses,
        aliases: tuple[str, str],
        call: WriteCall,
    ) -> WriteResult: ...


_carriers: dict[type, CarryMerge] = {}
"""By the class of the session: a classic one, or one of Spark Connect."""


def carry_merges(sessions: type, by: CarryMerge) -> None:
    """Let merges of DataFrames of such sessions be carried out by this function from now on."""
    _carriers[sessions] = by


def merge_frame(
    table: "HudiTable", source: "DataFrame", on: Any, clauses: MergeClauses, aliases: tuple[str, str], call: WriteCall
) -> WriteResult:
    """Raises: Unsupported while nobody carries merges of DataFrames out."""
    carrier = _carriers.get(type(source.sparkSession))
    if carrier is None:
        raise Unsupported(
            "merge: the source is a Spark DataFrame, which SQL on Spark merges: call pyhudi.spark.register(spark) first"
        )
    return carrier(table, source, on, clauses, aliases, call)
