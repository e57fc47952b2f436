"""Log compaction of one file slice: the blocks of its log become a log with one record a key.

It is a module-level function over frozen values. A thread of this process and a Spark task run it with the same result.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Unsupported
from pyhudi.format.log.delete import make_deletes
from pyhudi.format.log.headers import merged_instants
from pyhudi.format.names import join
from pyhudi.format.timeline.records import WriteStat
from pyhudi.merge.cells import take_one
from pyhudi.merge.fold import Folded
from pyhudi.merge.ordering import lacks_value
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.log_merge import fold_blocks
from pyhudi.table.slices.merged_slice import key_parts, stored_blocks
from pyhudi.table.slices.slice_log import LogTally, SliceFiles
from pyhudi.write.handles.compaction import CompactionTarget, SliceTask, with_log_counts, write_token
from pyhudi.write.handles.log_writer import BlockStyle, LogDestination, LogRows, WrittenLog, write_log


def compact_log(
    target: CompactionTarget, task: SliceTask, *, task_attempt: int, storage: Storage | None = None
) -> list[WriteStat]:
    """Write a slice's merged log as one log file, or several if one gets large enough. Returns the commit's statements
    of them.

    Rows keep the instant of their last write, and deletes their ordering values. No base file is read; records are
    matched by key.
    Memory: the merged log, or the part of it that may be held at once, and a block of it.
    Spec: format/actions.md section 8, format/log-format.md section 5.
    Seen: 1.0.2 keeps commit times too, 1.2.0 does not.
    """
    store = storage if storage is not None else open_storage(target.location)
    token = write_token(target, task, task_attempt)
    destination = LogDestination(
        store, target.requested, task.partition, task.file_id, token, target.log_marker, task.log
    )

    reading, tally = target.reading, LogTally()
    files = SliceFiles(None, "", task.files.logs)
    blocks = stored_blocks(store, files, reading, tally)
    style = BlockStyle(
        target.avro_schema, target.logs, target.settings.compression, compacted=merged_instants(blocks),
        fills_meta=target.settings.fills_meta, left_out=target.settings.left_out,
    )  # fmt: skip

    written: list[WrittenLog] = []
    for part in key_parts(blocks, reading):
        folded = fold_blocks(
            blocks, files, reading.rules, reading.keys, target.schema, part, tally, as_written=reading.as_written
        )
        rows, deletes = _rows(target, folded), _deletes(task, folded)
        written += write_log(destination, style, rows, deletes, files_before=len(written))

    stats = [_stat(task, log) for log in written]
    return [*(with_log_counts(stat, task, tally) for stat in stats[:1]), *stats[1:]]


def _stat(task: SliceTask, log: WrittenLog) -> WriteStat:
    name = log.name.format()
    return WriteStat(
        file_id=task.file_id, path=join(task.partition, name), partition_path=task.partition,
        prev_commit=task.base_instant, num_writes=log.rows, num_update_writes=log.rows, num_deletes=log.deletes,
        total_write_bytes=log.size_bytes, file_size_in_bytes=log.size_bytes,
        log_version=log.name.version, log_offset=0,
        base_file=(task.base_file or "") if task.log is not None else "",
        log_files=(*(task.log.beside if task.log is not None else ()), name),
    )  # fmt: skip


def _rows(target: CompactionTarget, folded: Folded) -> LogRows:
    entries = folded.entries
    row = entries.row[~entries.records.is_delete]
    columns = [take_one(column, row) for column in entries.rows.columns]
    return LogRows(pa.table(columns, schema=folded.schema).select(target.schema.names))


def _deletes(task: SliceTask, folded: Folded) -> LogRows:
    """Deletes keep their ordering values. Deletes without one go on to win over whatever came before them.

    Raises: Unsupported for an ordering value of another class than the table's: written again, it would be none.
    """
    entries = folded.entries
    dead = np.flatnonzero(entries.records.is_delete)
    keys = take_one(entries.keys, dead).cast(pa.string())
    records = entries.records.take(dead)
    found = [take_one(column, dead) for column in entries.ordering]
    if (lacks_value(found, len(dead), is_block=True) & records.is_block_delete & ~records.is_commit_time).any():
        raise Unsupported(
            f"log of '{join(task.partition, task.file_id)}': a delete whose ordering value is of another class than "
            "the table's, which a log compaction cannot keep; compact instead"
        )

    no_value = pa.array(records.is_commit_time)
    ordering = [
        pc.if_else(no_value, pa.scalar(None, field.type), column.cast(field.type))
        for column, field in zip(found, folded.fields, strict=True)
    ]

    return LogRows(pa.Table.from_batches([make_deletes(keys, pa.repeat(task.partition, len(keys)), ordering)]))
