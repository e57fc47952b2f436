"""On what the metadata table and the data may disagree."""

from dataclasses import dataclass
from enum import StrEnum


class DifferenceKind(StrEnum):
    """What is wrong, as seen from the metadata table."""

    GONE = "the index itself is gone: the next write drops it, build_index makes it anew"
    PARTITION_MISSING = "partition missing from the metadata table"
    PARTITION_ABSENT = "partition is not in the storage"
    FILE_MISSING = "file missing from the metadata table"
    FILE_ABSENT = "file is not in the storage"
    SIZE = "size differs"
    RECORD_MISSING = "record missing from the metadata table"
    RECORD_VALUE = "record says otherwise"
    RECORD_COUNT = "number of records differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing on which the metadata table and the data disagree.

    `metadata_partition`: the part of the metadata table that says it. `partition`: of the data; `name`: a file, or
    the key of a record. `stored`, `known`: what the data and the metadata table say, as text.
    """

    metadata_partition: str
    kind: DifferenceKind
    partition: str
    name: str = ""
    stored: str = ""
    known: str = ""
