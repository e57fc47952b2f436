"""What an index knows of columns: the protocol through which planning asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.table.predicate.nodes import Node

FILES: Final = pa.schema([("partition", pa.string()), ("name", pa.string())])
"""Files as a reader asks for them."""

Kept: TypeAlias = npt.NDArray[np.bool_]
"""Of files, slices or partitions, in the order in which they were asked for, those that are left."""


@dataclass(frozen=True, slots=True)
class KnownExpression:
    """An index on an expression: its name, the column and the expression. `has_filters`: instead of statistics."""

    index: str
    source: str
    node: Node
    has_filters: bool


class ExpressionStatistics(Protocol):
    """What indexes on expressions know, as of the latest commit. Raises: CorruptFile, naming the file."""

    def known(self) -> Sequence[KnownExpression]:
        """The indexes that are ready, and whose expressions can be computed here."""

    def of_files(self, of: KnownExpression, files: pa.Table) -> pa.Table | None:
        """Statistics of data files and logs, as `FileStatistics` gives them of a column."""

    def of_partitions(self, of: KnownExpression, partitions: Sequence[str]) -> pa.Table | None:
        """Statistics over all files of a partition."""

    def may_hold(self, of: KnownExpression, files: pa.Table, texts: pa.Array) -> Kept:
        """Which of these files (`FILES`) may have a row in which the expression is one of these texts."""


class FileStatistics(Protocol):
    """Bounds of columns in files, as of the latest commit. `column`: its dotted name, and the type that it has now.

    Answers have the columns `partition`, `file` (of files only), `min`, `max`, `is_known` (of the bounds),
    `null_count`, `value_count` (with nulls), and a row for what is known only: anything else may hold anything.
    None: nothing is known of this column. Raises: CorruptFile, naming the file.
    """

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        """Statistics of data files and logs (`FILES`)."""


class PartitionStatistics(Protocol):
    """Bounds of columns over all files of a partition, told as `FileStatistics` tells those of files."""

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        """Statistics of these partitions."""
