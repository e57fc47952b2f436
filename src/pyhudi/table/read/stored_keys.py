"""How a table spells the keys of one column: bare, as `7`, or with the column's name, as `id:7`.

Complex key generators of Apache Hudi up to 0.14.0, and from 1.1 on, give the name. Those in between do not, and no
property tells. So the stored keys do: new rows spelled otherwise would stand beside those that they are to replace.
Spec: format/layout.md section 5.1.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pyhudi.format.footer import KeyFooter
from pyhudi.format.keys.record_keys import KeySpec, record_keys
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.table.facts.config import KeyKind
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.base_files.rows import open_rows, read_stored_batches
from pyhudi.table.slices.merged_slice import SliceReader
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot

_COMMITS_MAX = 3
"""So many of the newest commits are asked for partitions that have rows; then all partitions are."""


def stored_key_spec(snapshot: Snapshot, *, names_column: bool | None = None) -> KeySpec:
    """The table's keys in the spelling of its rows. Most tables have one spelling, and need no look.

    `names_column`: the spelling of a table without rows, of a version that has both; None: the version's own.
    Requests: a commit, a listing of one of its partitions, and the footer of a base file; where that does not tell, the
    first rows of two columns.
    """
    spec, config = snapshot.key_spec, snapshot.config
    if config.key_kind is not KeyKind.COMPLEX or len(spec.record_key) != 1 or not config.has_meta_fields:
        return spec
    is_named = _is_named(snapshot, spec)
    if is_named is None:
        is_named = spec.is_composite or bool(names_column)
    return replace(spec, is_composite=is_named)


def _is_named(snapshot: Snapshot, spec: KeySpec) -> bool | None:
    """Whether a stored key has its column's name; None where no row is stored."""
    column = spec.record_key[0]
    if not {RECORD_KEY, column} <= set(snapshot.schema_with_meta.names):
        return None  # no write has stated any columns

    for file_slice in _slices(snapshot):
        if file_slice.base_file is not None and not _may_name_column(snapshot, file_slice, column):
            return False
        for rows in _rows(snapshot, file_slice, [RECORD_KEY, column]):
            key: str = rows.column(0)[0].as_py()
            bare = record_keys(pa.table(rows.slice(0, 1)), replace(spec, is_composite=False))[0].as_py()
            return key != bare and key.startswith(f"{column}:")
    return None


def _may_name_column(snapshot: Snapshot, file_slice: FileSlice, column: str) -> bool:
    """Whether the least key in a base file's footer begins with the column's name, or no footer tells."""
    assert file_slice.base_file is not None
    path = join(file_slice.partition, file_slice.base_file.name.format())
    with closing(open_rows(snapshot.storage, path, file_slice.source, snapshot.as_written)) as file:
        ends = KeyFooter.parse(file.entries).key_range
    return ends is None or ends[0].startswith(f"{column}:")


def _rows(snapshot: Snapshot, file_slice: FileSlice, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Rows of the base file, though logs may have changed them since; of a slice without one, those of its logs."""
    if file_slice.base_file is not None:
        path = join(file_slice.partition, file_slice.base_file.name.format())
        found = read_stored_batches(
            snapshot.storage, path, columns, use_threads=False, source=file_slice.source,
            as_written=snapshot.as_written,
        )  # fmt: skip
        yield from (batch.select(columns) for batch in found if len(batch))
        return
    logs = log_reading(snapshot)
    assert logs is not None
    merged = SliceReader(snapshot.schema_with_meta, logs).rows(snapshot.storage, file_slice, columns)
    yield from (batch for batch in merged.to_batches() if len(batch))


def _slices(snapshot: Snapshot) -> Iterator[FileSlice]:
    seen: set[str] = set()
    for instant in reversed(snapshot.timeline.completed_writes[-_COMMITS_MAX:]):
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        for partition in metadata.partition_to_write_stats:
            if partition not in seen:
                seen.add(partition)
                yield from snapshot.slices(partition)
    for partition in snapshot.listing.partitions() if snapshot.timeline.completed_writes else ():
        if partition not in seen:
            yield from snapshot.slices(partition)
