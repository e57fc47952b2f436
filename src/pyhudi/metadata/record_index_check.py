"""Comparing the record index with the rows that are stored."""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.metadata_groups import RECORD_INDEX
from pyhudi.format.schema import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.metadata.check import Difference, DifferenceKind
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.key_indexes import locate_records

COLUMNS: Final = (RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""Of the rows to compare with."""

DIFFERENCES_MAX: Final = 1_000
"""After so many the comparison ends: the index is to be made anew anyway."""

_FILE_ID: Final = r"^\.?([^_]+).*$"
"""The file id within a file's name. Seen: rows of logs have the id alone there."""

_STORED: Final = ("key", "partition", "file_id")


def record_index_differences(indexes: MetadataIndexes, rows: Iterable[pa.RecordBatch]) -> Iterator[Difference]:
    """Every row that the index does not know, or places elsewhere; then how many keys it has too many.

    `rows`: all of the table, with `COLUMNS`. Memory: a batch of them and its keys' locations.
    """
    shown = stored_count = 0
    for batch in rows:
        stored_count += len(batch)
        for difference in _batch_differences(indexes, batch):
            yield difference
            shown += 1
            if shown == DIFFERENCES_MAX:
                yield _count(f"more than {DIFFERENCES_MAX:,} rows differ: the comparison ended here", "")
                return
    found = indexes.find(RECORD_INDEX)
    known_count = 0 if found is None else sum(len(part.newest()) for part in found.scan())
    if known_count != stored_count:
        yield _count(f"{stored_count:,} rows", f"{known_count:,} keys")


def _batch_differences(indexes: MetadataIndexes, batch: pa.RecordBatch) -> Iterator[Difference]:
    ids = pc.replace_substring_regex(batch.column(FILE_NAME), _FILE_ID, r"\1")
    stored = pa.table([batch.column(RECORD_KEY), batch.column(PARTITION_PATH), ids], names=_STORED)
    located = locate_records(indexes, stored.column("key"))
    assert located is not None
    # In an index that is kept by partition a key may have several locations: one that agrees is enough.
    wrong = stored.join(located.select(_STORED), keys=list(_STORED), join_type="left anti")
    if not len(wrong):
        return
    known = located.select(_STORED).rename_columns(["key", "known_partition", "known_file_id"])
    for row in wrong.join(known, keys="key", join_type="left outer").slice(0, DIFFERENCES_MAX).to_pylist():
        is_missing = row["known_file_id"] is None
        yield Difference(
            RECORD_INDEX,
            DifferenceKind.RECORD_MISSING if is_missing else DifferenceKind.RECORD_VALUE,
            row["partition"],
            row["key"],
            stored=row["file_id"],
            known="" if is_missing else f"{row['known_partition']}/{row['known_file_id']}",
        )


def _count(stored: str, known: str) -> Difference:
    return Difference(RECORD_INDEX, DifferenceKind.RECORD_COUNT, "", stored=stored, known=known)
