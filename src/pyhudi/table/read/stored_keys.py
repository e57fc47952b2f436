"""How a table spells the keys of one column: bare, as `7`, or with the column's name, as `id:7`.

Complex key generators of Apache Hudi up to 0.14.0, and from 1.1 on, give the name. Those in between do not, and no
property tells. So the stored keys do: new rows spelled otherwise would stand beside those that they are to replace.
Spec: format/layout.md section 5.1.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pyhudi.format.footer import KeyFooter
from pyhudi.format.keys.record_keys import KeySpec, record_keys
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.table.facts.config import KeyKind
from pyhudi.table.read.path_times import with_path_times
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.base_files.rows import open_rows
from pyhudi.table.slices.merged_slice import SliceReader
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot

_COMMITS_MAX = 3
"""So many of the newest commits are asked for partitions that have rows; then all partitions are."""


def stored_key_spec(snapshot: Snapshot, *, names_column: bool | None = None) -> KeySpec:
    """The table's keys in the spelling of its rows. Most tables have one spelling, and need no look.

    `names_column`: the spelling of a table without rows, of a version that has both; None: the version's own.
    Requests: as `with_path_times`; a commit, a listing of one of its partitions, and the footer of a base file; where
    that does not tell, the first rows of two columns.
    """
    spec, config = with_path_times(snapshot.key_spec, snapshot), snapshot.config
    if config.key_kind is not KeyKind.COMPLEX or len(spec.record_key) != 1 or not config.has_meta_fields:
        return spec
    is_named = _is_named(snapshot, spec)
    if is_named is None:
        is_named = spec.is_composite or bool(names_column)
    return replace(spec, is_composite=is_named)


def _is_named(snapshot: Snapshot, spec: KeySpec) -> bool | None:
    """Whether a stored key has its column's name; None where no row is stored."""
    if not {RECORD_KEY, *spec.key_columns} <= set(snapshot.schema_with_meta.names):
        return None  # no write has stated any columns

    for file_slice in _slices(snapshot):
        look = _of_logs if file_slice.base_file is None else _of_base_file
        found = look(snapshot, file_slice, spec)
        if found is not None:
            return found
    return None


def _of_base_file(snapshot: Snapshot, file_slice: FileSlice, spec: KeySpec) -> bool | None:
    """As the base file has its keys, though logs may have changed its rows since. A footer tells most bare keys."""
    assert file_slice.base_file is not None
    path = join(file_slice.partition, file_slice.base_file.name.format())
    with closing(open_rows(snapshot.storage, path, file_slice.source, snapshot.as_written)) as file:
        ends = KeyFooter.parse(file.entries).key_range
        if ends is not None and not ends[0].startswith(f"{spec.record_key[0]}:"):
            return False
        return _of_rows(file.batches([RECORD_KEY, *spec.key_columns]), spec)


def _of_logs(snapshot: Snapshot, file_slice: FileSlice, spec: KeySpec) -> bool | None:
    logs = log_reading(snapshot)
    assert logs is not None
    reader = SliceReader(snapshot.schema_with_meta, logs)
    return _of_rows(reader.rows(snapshot.storage, file_slice, [RECORD_KEY, *spec.key_columns]).to_batches(), spec)


def _of_rows(batches: Iterable[pa.RecordBatch], spec: KeySpec) -> bool | None:
    """As the first row has its key; None without rows."""
    first = next((batch for batch in batches if len(batch)), None)
    if first is None:
        return None
    key: str = first.column(RECORD_KEY)[0].as_py()
    bare = record_keys(pa.table(first.slice(0, 1)), replace(spec, is_composite=False))[0].as_py()
    return key != bare and key.startswith(f"{spec.record_key[0]}:")


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
