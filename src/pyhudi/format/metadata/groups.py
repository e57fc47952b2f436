"""The metadata table's partitions: their names, the type of their records, and the ids of their file groups.

Spec: format/metadata-table.md section 3.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

from pyhudi.errors import Invalid
from pyhudi.format.keys.record_keys import ESCAPED_CHARACTERS

FILES: Final = "files"
COLUMN_STATS: Final = "column_stats"
BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
PARTITION_STATS: Final = "partition_stats"
SECONDARY_INDEX_PREFIX: Final = "secondary_index_"
EXPRESSION_INDEX_PREFIX: Final = "expr_index_"
FUNCTIONAL_INDEX_PREFIX: Final = "func_index_"
"""The prefix of expression indexes in the betas of 1.0.0."""

PARTITION_LIST_TYPE: Final = 1
FILES_TYPE: Final = 2
COLUMN_STATS_TYPE: Final = 3
BLOOM_FILTERS_TYPE: Final = 4
RECORD_INDEX_TYPE: Final = 5
PARTITION_STATS_TYPE: Final = 6
SECONDARY_INDEX_TYPE: Final = 7

_PREFIXES: Final = {
    FILES: "files-",
    COLUMN_STATS: "col-stats-",
    BLOOM_FILTERS: "bloom-filters-",
    RECORD_INDEX: "record-index-",
    PARTITION_STATS: "partition-stats-",
}
_NAMED: Final = (SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX, FUNCTIONAL_INDEX_PREFIX)
_TO_ESCAPE: Final = re.compile("[" + re.escape(ESCAPED_CHARACTERS + "_-") + "]")
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_TAIL: Final = re.compile(r"(?P<index>\d{4,})(?P<suffix>-0)?")


def file_group_prefix(partition: str) -> str:
    """The prefix of the ids of a metadata partition's file groups. Example: `col-stats-` for `column_stats`.

    Raises: Invalid for a name that is no metadata partition.
    """
    if partition in _PREFIXES:
        return _PREFIXES[partition]
    if partition.startswith(_NAMED):
        return partition.replace("_", "-") + "-"
    raise Invalid(f"'{partition}': expected a partition of the metadata table, such as {', '.join(_PREFIXES)}")


@dataclass(frozen=True, slots=True)
class MetadataGroupId:
    """The id of a file group of the metadata table, as data. `parse` and `format` are exact inverses.

    `partition`: the partition of the metadata table. `data_partition`: in a partitioned record index, the data
    partition whose keys the group holds; else None. `has_suffix`: False for ids without a file index, such as
    `files-0000`, which table version 5 writes. Seen: 1.2.0 also escapes `_` and `-` in a data partition's name.
    """

    partition: str
    index: int
    data_partition: str | None = None
    has_suffix: bool = True

    @classmethod
    def parse(cls, file_id: str, *, partition: str) -> Self | None:
        """The parsed id, or None for text that is no id of this metadata partition."""
        prefix = file_group_prefix(partition)
        if not file_id.startswith(prefix):
            return None
        tail, data_partition = file_id.removeprefix(prefix), None
        if partition == RECORD_INDEX and file_id.count("-") == 4:
            escaped, _, tail = tail.partition("-")
            data_partition = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), escaped)
        match = _TAIL.fullmatch(tail)
        if match is None:
            return None
        parsed = cls(partition, int(match["index"]), data_partition, match["suffix"] is not None)
        return parsed if parsed.format() == file_id else None

    def format(self) -> str:
        prefix = file_group_prefix(self.partition)
        if self.data_partition is not None:
            prefix += _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", self.data_partition) + "-"
        return f"{prefix}{self.index:04d}{'-0' if self.has_suffix else ''}"
