"""What an index knows of columns: the protocol through which planning asks for it."""

from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa

FILES: Final = pa.schema([("partition", pa.string()), ("name", pa.string())])
"""Files as a reader asks for them."""


class FileStatistics(Protocol):
    """Bounds of columns, as of the latest commit. `column`: its dotted name, and the type that it has now.

    Answers have the columns `partition`, `file` (of files only), `min`, `max`, `is_known` (of the bounds),
    `null_count`, `value_count` (with nulls), and a row for what is known only: anything else may hold anything.
    None: nothing is known of this column. Raises: CorruptFile, naming the file.
    """

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        """Statistics of data files and logs (`FILES`)."""

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        """Statistics over all files of a partition."""
