"""`where`: Spark SQL predicate text or an Arrow expression, over Arrow data, partitions and statistics."""

from pyhudi.predicate.parse import Predicate, parse_predicate
from pyhudi.predicate.prune import (
    ColumnRange,
    partition_can_match,
    partitions_in_doubt,
    statistics_can_match,
    which_can_match,
)
from pyhudi.predicate.pushdown import as_expression

__all__ = [
    "ColumnRange",
    "Predicate",
    "as_expression",
    "parse_predicate",
    "partition_can_match",
    "partitions_in_doubt",
    "statistics_can_match",
    "which_can_match",
]
