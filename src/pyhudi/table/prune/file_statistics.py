"""The protocol through which planning asks an index about columns and expressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.predicate.nodes import Node

FILES: Final = pa.schema([("partition", pa.string()), ("name", pa.string())])
"""The columns by which a reader names files."""

Kept: TypeAlias = npt.NDArray[np.bool_]
"""For each file, slice or partition that was asked about, in the same order: whether it is left."""


@dataclass(frozen=True, slots=True)
class KnownExpression:
    """An index on an expression: name, source column, expression. `has_filters`: it has filters, not statistics."""

    index: str
    source: str
    node: Node
    has_filters: bool


class ExpressionStatistics(Protocol):
    """What the indexes on expressions state, as of the latest commit. Raises: CorruptFile, naming the file."""

    def known(self) -> Sequence[KnownExpression]:
        """The indexes that are ready, and whose expressions can be computed here."""

    def of_files(self, expression: KnownExpression, files: pa.Table) -> pa.Table | None:
        """Statistics of data files and logs, in the form in which `FileStatistics` gives them for a column."""

    def of_partitions(self, expression: KnownExpression, partitions: Sequence[str]) -> pa.Table | None:
        """Statistics over all files of a partition."""

    def may_hold(self, expression: KnownExpression, files: pa.Table, texts: pa.Array) -> Kept:
        """For each of these files (`FILES`), whether the expression may be one of these texts in some row."""


class FileStatistics(Protocol):
    """Bounds of columns in files, as of the latest commit. `column`: its dotted name, and the type that it has now.

    An answer has a row for each file or partition that the index knows; any other may hold any value. Columns:
    `partition`, `file` (for files only), `min`, `max`, `is_known` (whether the bounds are), `null_count`, `value_count`
    (nulls included). None: the index knows nothing about the column. Raises: CorruptFile, naming the file.
    """

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        """Statistics of data files and logs (`FILES`)."""


class PartitionStatistics(Protocol):
    """Bounds of columns over all files of a partition, told as `FileStatistics` tells those of files."""

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        """Statistics of these partitions."""
