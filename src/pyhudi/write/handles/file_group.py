"""The file-group handle: the incoming rows of one file group become its next base file, or go to its log.

It is a module-level function over frozen values and Arrow batches. A thread of this process and a Spark task run it
with the same result.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.names import BaseFileName, join
from pyhudi.format.schema.conversion import COMMIT_TIME, RECORD_KEY
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage
from pyhudi.write.handles.append import append_doubled, append_rows
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.base_file_writer import BaseFileWriter, without
from pyhudi.write.handles.change_log import ChangeLog
from pyhudi.write.handles.incoming_rows import IncomingRows, collect_rows, delete_mask
from pyhudi.write.handles.key_filter import KeyFilter
from pyhudi.write.handles.merge import BATCH_ROWS, MergeOutcome, merge_base_file
from pyhudi.write.handles.partition_metafile import put_partition_metafile
from pyhudi.write.handles.returning_rows import StoredLog, settle_late_rows
from pyhudi.write.handles.stored_rows import RowStamp, stored_rows, with_all_columns
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.place.plan import FileGroupTask, TaskKind
from pyhudi.write.place.searched_keys import search_keys


def run_file_group(
    target: WriteTarget,
    task: FileGroupTask,
    batches: Iterator[pa.RecordBatch],
    *,
    write_token: str,
    storage: Storage | None = None,
) -> list[WriteStatus]:
    """Write one file group. Returns nothing if nothing changed in it.

    `batches`: the incoming rows with `_hoodie_record_key` and the table's columns (a delete: the key and the ordering
    columns). Memory: the incoming rows of this file group; the key column and one row group of the file that is
    rewritten. The rows of a new group that are neither combined nor sorted are streamed.
    """
    store = storage if storage is not None else open_storage(target.location)

    if task.is_new_partition:
        put_partition_metafile(
            store, task.partition, requested=target.requested, epoch_ms=target.epoch_ms,
            is_parquet=target.has_parquet_metafiles,
        )  # fmt: skip

    if target.made_keys_prefix:
        batches = _with_made_keys(batches, target.made_keys_prefix)

    # An insert that drops duplicates leaves out the rows whose key is stored.
    if task.searched is not None and not target.matches_keys:
        stored = search_keys(store, target, task.searched)
        batches = (batch.filter(pc.invert(stored.holds(batch.column(RECORD_KEY)))) for batch in batches)

    match task.kind:
        case TaskKind.CREATE:
            return _create(store, target, task, _new_group_rows(target, batches), write_token)
        case TaskKind.REWRITE:
            return _rewrite(store, target, task, collect_rows(target, batches), write_token)
        case TaskKind.APPEND:
            log = StoredLog.of(store, target, task)
            settled = settle_late_rows(log, collect_rows(target, batches))
            return [
                *append_rows(store, target, task, settled, write_token, log),
                *append_doubled(store, target, task, settled.incoming, write_token),
            ]
        case _:
            assert_never(task.kind)


def _with_made_keys(batches: Iterator[pa.RecordBatch], prefix: str) -> Iterator[pa.RecordBatch]:
    """The rows with their whole record keys, `<instant>_<task>_<row>`. Spec: format/layout.md section 5.2."""
    for batch in batches:
        at = batch.schema.get_field_index(RECORD_KEY)
        keys = pc.binary_join_element_wise(prefix, batch.column(at), "")
        yield batch.set_column(at, RECORD_KEY, keys)


def _new_group_rows(target: WriteTarget, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a new file group: one a key if the write combines, and without deletes."""
    stream = _living(target, batches)
    for batch in _sorted(stream) if target.sorts_rows else stream:
        if len(batch):
            yield with_all_columns(batch, target.schema) if target.is_partial else batch


def _living(target: WriteTarget, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if target.combines:
        yield from collect_rows(target, batches).living.to_batches()
        return
    for batch in batches:
        gone = delete_mask(target, batch)
        yield batch.filter(pa.array(~gone)) if gone.any() else batch


def _sorted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows by record key. Equal keys keep the order in which they came. Memory: the rows, twice for a moment."""
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
    """Write new rows into new file groups: the task's own, and another one each time the size is reached.

    All rows of a bucket go to its one group.
    """
    statuses: list[WriteStatus] = []
    first = next(batches, None)
    prefix, _, number = task.file_id.rpartition("-")
    sequence, is_bucket = 0, task.bucket_id is not None

    while first is not None:
        file_id = f"{prefix}-{int(number) + len(statuses)}"
        name = BaseFileName(file_id, write_token, target.requested, target.settings.extension).format()
        stamp = RowStamp(target.requested, task.number, task.partition, name)
        constants = {COMMIT_TIME: target.requested, **stamp.constants}

        file = AttemptedFile(store, target.requested, join(task.partition, name), "CREATE")
        with _open_writer(file, target, constants=constants) as writer:
            while first is not None and (is_bucket or writer.size_bytes < target.settings.file_size_max_bytes):
                keys = first.column(RECORD_KEY)
                writer.write(stored_rows(stamp, first, writer.given, sequence), new_keys=keys)
                sequence += len(first)
                first = next(batches, None)

        statuses.append(
            WriteStatus(
                task_number=task.number,
                partition=task.partition,
                file_id=file_id,
                file_name=name,
                writes=writer.rows,
                inserts=writer.rows,
                updates=0,
                deletes=0,
                size_bytes=file.shown_size(),
            )
        )

    return statuses


def _rewrite(
    store: Storage, target: WriteTarget, task: FileGroupTask, rows: IncomingRows, write_token: str
) -> list[WriteStatus]:
    """Merge the stored rows with the incoming rows into the file group's next base file."""
    assert task.base_file is not None
    name = BaseFileName(task.file_id, write_token, target.requested, target.settings.extension).format()
    file = AttemptedFile(store, target.requested, join(task.partition, name), "MERGE")
    stamp = RowStamp(target.requested, task.number, task.partition, name)
    given = without(target.schema, stamp.constants)

    mode = target.change_mode
    with ChangeLog(store, target, task, write_token, mode) if mode is not None else nullcontext() as changes:
        outcome: MergeOutcome | None = merge_base_file(
            store,
            old_path=join(task.partition, task.base_file),
            source=task.source,
            rows=rows,
            as_stored=lambda batch, start: stored_rows(stamp, batch, given, start),
            open_writer=lambda bloom, key_range: _open_writer(
                file, target, constants=stamp.constants, bloom=bloom, key_range=key_range
            ),
            schema=given,
            target=target,
            changes=changes,
        )
    if outcome is None:
        return []

    status = WriteStatus(
        task_number=task.number, partition=task.partition, file_id=task.file_id, file_name=name,
        previous_instant=task.base_instant, previous_file=task.base_file,
        writes=outcome.writes, inserts=outcome.inserts, updates=outcome.updates, deletes=outcome.deletes,
        size_bytes=file.shown_size(), change_log=None if changes is None else changes.name,
        change_log_bytes=0 if changes is None else changes.size_bytes,
    )  # fmt: skip
    return [status]


def _open_writer(
    file: AttemptedFile,
    target: WriteTarget,
    *,
    constants: Mapping[str, str],
    bloom: KeyFilter | None = None,
    key_range: tuple[str, str] | None = None,
) -> BaseFileWriter:
    """Put the marker, then open the base file."""
    file.begin()
    return BaseFileWriter(
        file.storage, file.path, target.schema, target.avro_schema, target.settings, constants=constants,
        bloom=bloom if bloom is not None else target.settings.new_bloom(), key_range=key_range,
        before_visible=file.refuse_when_given_up,
    )  # fmt: skip
