"""The file-group handle: one file group's incoming rows become its next base file.

A module-level function over frozen values and Arrow batches, run by a thread in this process or by
a Spark task, with the same result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.bloom import BloomFilter
from pyhudi.format.names import PARTITION_METAFILE, BaseFileName, join
from pyhudi.format.properties import encode_partition_metadata
from pyhudi.format.schema import COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY, SEQUENCE_NUMBER
from pyhudi.merge.latest import latest_per_key
from pyhudi.merge.rules import IS_DELETED
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.write.attempt import AttemptedFile
from pyhudi.write.base_file_writer import BaseFileSettings, BaseFileWriter, without
from pyhudi.write.merge_handle import BATCH_ROWS, MergeOutcome, merge_base_file
from pyhudi.write.plan import FileGroupTask
from pyhudi.write.source import ARRIVAL, LEAVES

_NUMBERS_KEPT, _NUMBERS_WORTH_KEEPING = 1 << 18, 1 << 12


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What all file groups of one write share. Picklable.

    `schema`, `avro_schema`: rows as stored, meta fields included. `ordering`: the columns that settle
    rows of one key; empty: the last to arrive wins. `compares_stored`: ordering also decides against
    the stored row (event-time ordering). `combines`: one row a key within the input. `matches_keys`:
    rows of a key that is stored replace it (upsert, delete); otherwise all are new (insert). `drops_marked`: rows that
    `_hoodie_is_deleted` marks are not stored, and take what is stored of their key along. `sorts_rows`: a new
    file group's rows go by record key; otherwise they stay as they come. `made_keys_prefix`: goes before record
    keys that the writer makes up; empty where columns are the key.
    """

    location: StorageLocation
    requested: str
    epoch_ms: int
    schema: pa.Schema
    avro_schema: str
    settings: BaseFileSettings
    ordering: tuple[str, ...]
    compares_stored: bool
    combines: bool
    matches_keys: bool
    drops_marked: bool
    is_delete: bool
    sorts_rows: bool = False
    made_keys_prefix: str = ""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """What became of one base file: names and counts, the only thing that returns from a task."""

    bucket: int
    partition: str
    file_id: str
    file_name: str
    previous_instant: str | None
    previous_file: str | None
    writes: int
    inserts: int
    updates: int
    deletes: int
    size_bytes: int


def run_file_group(
    target: WriteTarget,
    task: FileGroupTask,
    batches: Iterator[pa.RecordBatch],
    *,
    write_token: str,
    storage: Storage | None = None,
) -> list[WriteStatus]:
    """Write one file group; none where nothing changed in it.

    `batches`: the incoming rows with `_hoodie_record_key` and the table's columns (a delete: the key and
    the ordering columns). Memory: the incoming rows of this file group, save for a new group without
    combining and sorting, which streams; the key column and one row group of the file that is rewritten.
    """
    store = storage if storage is not None else open_storage(target.location)
    if task.is_new_partition:
        content = encode_partition_metadata(
            requested=target.requested, partition=task.partition, epoch_ms=target.epoch_ms
        )
        store.put_new(join(task.partition, PARTITION_METAFILE), content)
    if target.made_keys_prefix:
        batches = _with_made_keys(batches, target.made_keys_prefix)
    if task.base_file is None:
        return _create(store, target, task, _settled(target, task, batches), write_token)
    return _rewrite(store, target, task, _collected(target, batches), write_token)


def _with_made_keys(batches: Iterator[pa.RecordBatch], prefix: str) -> Iterator[pa.RecordBatch]:
    """The rows with whole record keys, `<instant>_<task>_<row>`. Spec: format/layout.md section 5.2."""
    for batch in batches:
        at = batch.schema.get_field_index(RECORD_KEY)
        keys = pc.binary_join_element_wise(prefix, batch.column(at), "")
        yield batch.set_column(at, RECORD_KEY, keys)


def _collected(target: WriteTarget, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    rows = pa.Table.from_batches(list(batches))
    if not target.combines:
        return rows
    arrival = (ARRIVAL,) if ARRIVAL in rows.column_names else ()
    return latest_per_key(rows, key=RECORD_KEY, order=(*target.ordering, *arrival))


def _settled(target: WriteTarget, task: FileGroupTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a new file group: one a key where the write combines; deletes of absent keys dropped."""
    stream = iter(_collected(target, batches).to_batches()) if target.combines else batches
    for batch in _sorted(stream) if target.sorts_rows else stream:
        if IS_DELETED in batch.schema.names and target.drops_marked:
            batch = batch.filter(pc.invert(pc.fill_null(batch.column(IS_DELETED), False)))
        if len(batch):
            yield batch


def _sorted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows by record key, equal ones as they came. Memory: the rows, twice for a moment."""
    held = list(batches)
    if not held:
        return
    rows = pa.Table.from_batches(held).combine_chunks()
    del held
    order = pc.sort_indices(rows.column(RECORD_KEY))
    for start in range(0, len(rows), BATCH_ROWS):
        yield from rows.take(order.slice(start, BATCH_ROWS)).to_batches()


def _create(
    store: Storage,
    target: WriteTarget,
    task: FileGroupTask,
    batches: Iterator[pa.RecordBatch],
    write_token: str,
) -> list[WriteStatus]:
    """New rows into new file groups: the task's own, and further ones each time the size is reached."""
    statuses: list[WriteStatus] = []
    first = next(batches, None)
    prefix, _, number = task.file_id.rpartition("-")
    sequence = 0
    while first is not None:
        file_id = f"{prefix}-{int(number) + len(statuses)}"
        name = BaseFileName(file_id, write_token, target.requested, ".parquet").format()
        constants = {COMMIT_TIME: target.requested, **_places(task.partition, name)}
        file = AttemptedFile(store, target.requested, join(task.partition, name), "CREATE")
        with _open_writer(file, target, constants=constants) as writer:
            while first is not None and writer.size_bytes < target.settings.file_size_max_bytes:
                keys = first.column(RECORD_KEY)
                writer.write(stored_rows(target, task, first, writer.given, sequence), new_keys=keys)
                sequence += len(first)
                first = next(batches, None)
        statuses.append(
            WriteStatus(
                task.bucket,
                task.partition,
                file_id,
                name,
                None,
                None,
                writes=writer.rows,
                inserts=writer.rows,
                updates=0,
                deletes=0,
                size_bytes=file.shown_size(),
            )
        )
    return statuses


def _rewrite(
    store: Storage, target: WriteTarget, task: FileGroupTask, rows: pa.Table, write_token: str
) -> list[WriteStatus]:
    """The stored rows merged with the incoming ones into the file group's next base file."""
    assert task.base_file is not None
    name = BaseFileName(task.file_id, write_token, target.requested, ".parquet").format()
    file = AttemptedFile(store, target.requested, join(task.partition, name), "MERGE")
    constants = _places(task.partition, name)
    given = without(target.schema, constants)
    outcome: MergeOutcome | None = merge_base_file(
        store,
        old_path=join(task.partition, task.base_file),
        rows=rows,
        is_delete=_delete_mask(target, rows),
        as_stored=lambda batch, start: stored_rows(target, task, batch, given, start),
        open_writer=lambda bloom, key_range: _open_writer(
            file, target, constants=constants, bloom=bloom, key_range=key_range
        ),
        schema=given,
        settings=target.settings,
        ordering=target.ordering if target.compares_stored else (),
        matches_keys=target.matches_keys,
    )
    if outcome is None:
        return []
    status = WriteStatus(
        task.bucket, task.partition, task.file_id, name, task.base_instant, task.base_file,
        writes=outcome.writes, inserts=outcome.inserts, updates=outcome.updates, deletes=outcome.deletes,
        size_bytes=file.shown_size(),
    )  # fmt: skip
    return [status]


def _delete_mask(target: WriteTarget, rows: pa.Table) -> np.ndarray:
    mask = np.full(len(rows), target.is_delete)
    for name, counts in ((IS_DELETED, target.drops_marked), (LEAVES, target.matches_keys)):
        if counts and name in rows.column_names:
            mask |= np.asarray(pc.fill_null(rows.column(name), False))
    return mask


def _places(partition: str, file_name: str) -> dict[str, str]:
    """The meta fields that are the same in every row of a base file."""
    return {PARTITION_PATH: partition, FILE_NAME: file_name}


def stored_rows(
    target: WriteTarget, task: FileGroupTask, rows: pa.RecordBatch, schema: pa.Schema, start: int
) -> pa.RecordBatch:
    """Incoming rows as they are stored, with those of the meta fields that `schema` has.

    `start`: how many rows of this task came before; it numbers them. Seen: the sequence number is
    `<instant>_<task>_<n>`.
    """
    count = len(rows)
    numbers = _number_texts(start, count)
    meta = {
        SEQUENCE_NUMBER: pc.binary_join_element_wise(f"{target.requested}_{task.bucket}_", numbers, ""),
        RECORD_KEY: rows.column(RECORD_KEY),
    }
    if COMMIT_TIME in schema.names:
        meta[COMMIT_TIME] = pa.repeat(target.requested, count)
    columns = [meta[name] if name in meta else rows.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _number_texts(start: int, count: int) -> pa.Array:
    """The numbers from `start` on as texts. The first of them are kept once a task has many
    rows: each counts its rows from 0."""
    if count >= _NUMBERS_WORTH_KEEPING and start + count <= _NUMBERS_KEPT:
        return _first_number_texts().slice(start, count)
    return pa.array(np.arange(start, start + count)).cast(pa.string())


@cache
def _first_number_texts() -> pa.Array:
    return pa.array(np.arange(_NUMBERS_KEPT)).cast(pa.string())


def _open_writer(
    file: AttemptedFile,
    target: WriteTarget,
    *,
    constants: Mapping[str, str],
    bloom: BloomFilter | None = None,
    key_range: tuple[str, str] | None = None,
) -> BaseFileWriter:
    """Put the marker, then open the base file."""
    file.begin()
    return BaseFileWriter(
        file.storage, file.path, target.schema, target.avro_schema, target.settings, constants=constants,
        bloom=bloom if bloom is not None else target.settings.new_bloom(), key_range=key_range,
        before_visible=file.refuse_when_given_up,
    )  # fmt: skip
