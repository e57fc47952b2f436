"""The bucket index: a hash of the key tells its file group in the partition, so that nothing is looked up.

Spec: format/indexes.md section 4.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.keys.bucket_hash import bucket_numbers
from pyhudi.format.names import file_group_id, join
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.bucket_facts import (
    BUCKET_COUNT,
    BUCKET_COUNT_DEFAULT,
    HASH_FIELDS,
    INDEX_TYPE,
    BucketFacts,
)
from pyhudi.table.slices.base_files.rows import AsWritten, open_rows
from pyhudi.table.view.file_system_view import FileSlice

_DIGITS = 8
_FIXED_SUFFIX = "-0000-0000-0000-000000000000"
_LIKELY_COUNT_MAX = 10_000
"""If the table says nothing, eight digits below this count as a bucket number. 1 in 400,000 UUIDs begins with such:
pyhudi never takes one of those for a file group that is no bucket."""


class BucketRule(Protocol):
    """Tells the bucket of each key in one partition. Frozen and picklable.

    Buckets are numbers from 0. Each has at most one file group.
    """

    @property
    def bucket_count(self) -> int:
        """The number of buckets. Every bucket's number is below it."""

    def bucket_of(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """The bucket of each record key."""

    def file_id_of(self, bucket: int, new_uuid: Callable[[], str]) -> str:
        """The file id for a bucket that has no file group yet."""

    def bucket_of_file(self, file_id: str) -> int | None:
        """The bucket of a file group. None if the file group belongs to another index."""


@dataclass(frozen=True, slots=True)
class FixedBuckets:
    """The same number of buckets in every partition, forever: the hash of the hash fields, modulo that number."""

    bucket_count: int
    hash_fields: tuple[str, ...]

    def bucket_of(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        return bucket_numbers(keys, self.hash_fields, self.bucket_count)

    def file_id_of(self, bucket: int, new_uuid: Callable[[], str]) -> str:
        """A random UUID whose first eight digits are the bucket's number. Spec: format/layout.md section 4.1."""
        assert 0 <= bucket < self.bucket_count
        return file_group_id(f"{bucket:0{_DIGITS}d}{new_uuid()[_DIGITS:]}", 0)

    def fixed_file_id_of(self, bucket: int, replaced: Container[str]) -> str:
        """The file id that all non-blocking writers give a new bucket, so that those at work at once open one group.

        `replaced`: ids of replaced file groups, which no reader looks at. Such an id is not taken again: the last
        number goes up. Example: `00000003-0000-0000-0000-000000000000-1`. Spec: format/layout.md section 4.1.
        """
        assert 0 <= bucket < self.bucket_count
        prefix = f"{bucket:0{_DIGITS}d}{_FIXED_SUFFIX}"
        return next(file_id for number in count() if (file_id := file_group_id(prefix, number)) not in replaced)

    def bucket_of_file(self, file_id: str) -> int | None:
        digits = file_id[:_DIGITS]
        return int(digits) if len(digits) == _DIGITS and digits.isascii() and digits.isdigit() else None


def live_buckets(rule: BucketRule, partition: str, slices: Sequence[FileSlice]) -> dict[int, FileSlice]:
    """The newest slice of each bucket of a partition that has a file group.

    `slices`: the newest slices of the partition. Raises: Invalid if another index or another number of buckets placed
    the rows; CorruptFile for two file groups of one bucket, which no reader can repair.
    """
    live: dict[int, FileSlice] = {}
    for file_slice in slices:
        bucket = rule.bucket_of_file(file_slice.file_id)
        if bucket is None:
            raise Invalid(
                f"partition '{partition}': expected file groups of the bucket index, found '{file_slice.file_id}', "
                f"which is no bucket's; another index placed its rows: leave out option '{INDEX_TYPE}'='BUCKET'"
            )

        if bucket >= rule.bucket_count:
            raise Invalid(
                f"option '{BUCKET_COUNT}'='{rule.bucket_count}': partition '{partition}' has bucket {bucket:,}, "
                f"file group '{file_slice.file_id}'; expected the count that the table was written with, more "
                f"than {bucket:,}"
            )

        if bucket in live:
            raise CorruptFile(
                join(partition, file_slice.file_id),
                0,
                expected=f"one file group of bucket {bucket:,} in partition '{partition}'",
                found=f"also '{live[bucket].file_id}'",
                hint="Roll back the write that made the second one.",
            )
        live[bucket] = file_slice
    return live


def looks_bucketed(slices: Sequence[FileSlice]) -> bool:
    """Whether the file ids look like fixed buckets, for a table whose properties do not say so.

    True if every file id begins with a possible bucket number, and no partition has the same number twice.
    `slices`: newest slices of some of the table's partitions. False without any.
    """
    seen: set[tuple[str, int]] = set()
    for file_slice in slices:
        if not _begins_with_bucket(file_slice.file_id):
            return False
        bucket = int(file_slice.file_id[:_DIGITS])
        if (file_slice.partition, bucket) in seen:
            return False
        seen.add((file_slice.partition, bucket))
    return bool(seen)


def unbucketed_uuid(new_uuid: Callable[[], str]) -> str:
    """A UUID for the file ids of file groups that are no buckets: one that no reader takes for a bucket's.

    A table whose only file group began like a bucket would be refused to every other index.
    """
    drawn = new_uuid()
    return f"f{drawn[1:]}" if _begins_with_bucket(drawn) else drawn


def _begins_with_bucket(file_id: str) -> bool:
    digits = file_id[:_DIGITS]
    return digits.isascii() and digits.isdigit() and int(digits) < _LIKELY_COUNT_MAX


def fixed_buckets(facts: BucketFacts, *, table: str, is_empty: bool) -> FixedBuckets:
    """The bucket rule of a table with a fixed number of buckets.

    The number is the one that the table stores or the write states. The default counts only for a table without file
    groups (`is_empty`): file ids tell which buckets have rows, not how many buckets there are.
    Raises: Invalid if the number is unknown.
    """
    assert facts.engine == "SIMPLE"
    if facts.bucket_count is None and not is_empty:
        raise Invalid(_unsaid(table))
    return FixedBuckets(facts.bucket_count or BUCKET_COUNT_DEFAULT, facts.hash_fields)


def refuse_unsaid_buckets(table: str, slices: Sequence[FileSlice]) -> None:
    """Refuse another index on a table that looks bucketed: readers by bucket would not find the rows it writes.

    `slices`: as for `looks_bucketed`. Raises: Invalid.
    """
    if looks_bucketed(slices):
        raise Invalid(_unsaid(table))


def _unsaid(table: str) -> str:
    return (
        f"table '{table}': its file groups are those of the bucket index, and its properties do not store how many "
        f"buckets a partition has: expected options '{INDEX_TYPE}'='BUCKET' and '{BUCKET_COUNT}' with the count that "
        f"it was written with ({BUCKET_COUNT_DEFAULT} if its writers stated none), and '{HASH_FIELDS}' if they stated "
        "that"
    )


def check_stored_keys(
    storage: Storage, rule: BucketRule, live: Mapping[int, FileSlice], as_written: AsWritten, *, partition: str
) -> int | None:
    """Check a rule that the table does not store against stored keys: the first of a partition's largest base file.

    Returns how many keys were checked, None for a partition that has only logs. Requests: a footer, and the keys of
    a row group. Memory: those keys. Raises: Invalid if another rule placed the rows.
    """
    with_base = [(s.base_file.size_bytes, bucket) for bucket, s in live.items() if s.base_file is not None]
    if not with_base:
        return None

    bucket = max(with_base)[1]
    base = live[bucket].base_file
    assert base is not None
    path = join(partition, base.name.format())
    with closing(open_rows(storage, path, as_written=as_written)) as file:
        if not len(file.group_rows):
            return 0
        keys = file.read([RECORD_KEY], groups=[0]).column(RECORD_KEY)

    found = rule.bucket_of(keys)
    strays = np.flatnonzero(found != bucket)
    if len(strays):
        row = int(strays[0])
        raise Invalid(
            f"{path} row {row:,}: expected keys of bucket {bucket:,}, found '{keys[row].as_py()}', which options "
            f"'{BUCKET_COUNT}'='{rule.bucket_count}' and '{HASH_FIELDS}' put in bucket {int(found[row]):,}; set them "
            "as the table was written"
        )
    return len(found)
