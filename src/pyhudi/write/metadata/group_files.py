"""The files of a file group of the metadata table, as a deltacommit and a compaction write them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.hfile.writer import encode_hfile_table
from pyhudi.format.log.delete import make_deletes, no_deletes
from pyhudi.format.log.writer import encode_delete_block, encode_hfile_block
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.format.timeline.records import WriteStat
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import NewLog
from pyhudi.versions import LogContent

WRITE_TOKEN = "0-0-0"


@dataclass(frozen=True, slots=True)
class GroupTarget:
    """Where a file goes: the partition of the metadata table, its file group, and the instant that writes it.

    `content`: the form of a log's blocks. `log`: the log's name, if its deltacommit does not name it; then
    `base_file` is the base file that it lies upon.
    """

    storage: Storage
    partition: str
    file_id: str
    requested: str
    record_schema: str
    content: LogContent
    log: NewLog | None = None
    base_file: str = ""


def write_group_log(
    target: GroupTarget, cells: pa.Table, deletes: pa.Array, *, compacted: Sequence[str] = ()
) -> WriteStat:
    """Write a log file with the cells and, behind them, the deletes. If there are neither, it has an empty delete
    block.

    `cells`: as `changes.CELLS`, in any order. A delete entry names its metadata partition and has the ordering value 0.
    `compacted`: the instants whose blocks a log compaction merged into these. Then the deletes come first: a key may
    have been deleted and put again, and nothing that the base file has of it may come back.
    Memory: the cells and the file. Spec: format/metadata-table.md section 8.
    """
    blocks = []
    if len(cells):
        blocks.append(_cells_block(target, cells, compacted))
    if len(deletes):
        blocks.insert(0 if compacted else len(blocks), _delete_block(target, deletes, compacted))
    if not blocks:
        empty = encode_delete_block(
            no_deletes(), instant_time=target.requested, compacted_instants=compacted, form=target.content
        )
        blocks.append(empty)

    log = target.log or NewLog(target.requested, 1)
    name = LogFileName(target.file_id, log.instant, log.version, WRITE_TOKEN).format()
    content = b"".join(blocks)
    target.storage.put(join(target.partition, name), content)

    return WriteStat(
        file_id=target.file_id, path=join(target.partition, name), prev_commit=log.instant, num_writes=len(cells),
        num_deletes=len(deletes), num_update_writes=len(cells), total_write_bytes=len(content),
        partition_path=target.partition, file_size_in_bytes=len(content), log_version=log.version, log_offset=0,
        base_file=target.base_file, log_files=(*log.beside, name),
    )  # fmt: skip


def _cells_block(target: GroupTarget, cells: pa.Table, compacted: Sequence[str]) -> bytes:
    schema_text = target.record_schema
    hfile = encode_hfile_table(cells.take(pc.sort_indices(cells.column("key"))), schema_text=schema_text)
    return encode_hfile_block(
        hfile, instant_time=target.requested, schema_text=schema_text, compacted_instants=compacted
    )


def _delete_block(target: GroupTarget, deletes: pa.Array, compacted: Sequence[str]) -> bytes:
    keys = deletes.take(pc.sort_indices(deletes)).cast(pa.large_string()).cast(pa.string())
    partitions = pa.repeat(pa.scalar(target.partition), len(keys))
    entries = make_deletes(keys, partitions, [pa.repeat(pa.scalar(0, pa.int32()), len(keys))])
    return encode_delete_block(
        entries, instant_time=target.requested, schema_text=target.record_schema, compacted_instants=compacted,
        form=target.content,
    )  # fmt: skip


def base_file_name(file_id: str, requested: str) -> str:
    return BaseFileName(file_id, WRITE_TOKEN, requested, ".hfile").format()


def write_group_base(target: GroupTarget, cells: pa.Table) -> WriteStat:
    """The base file of a file group, with all of its records. Memory: the cells and the file."""
    name = base_file_name(target.file_id, target.requested)
    content = encode_hfile_table(cells.take(pc.sort_indices(cells.column("key"))), schema_text=target.record_schema)
    target.storage.put(join(target.partition, name), content)
    return WriteStat(
        file_id=target.file_id, path=join(target.partition, name), prev_commit="null", num_writes=len(cells),
        num_inserts=len(cells), total_write_bytes=len(content), partition_path=target.partition,
        file_size_in_bytes=len(content),
    )  # fmt: skip
