"""Writing log files: blocks of rows and of deletes, in as many files as their size asks for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log.block import HeaderKey, LogBlock
from pyhudi.format.log.delete import make_deletes
from pyhudi.format.log.headers import data_header, with_positions_passed_over
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.log.writer import (
    encode_avro_block,
    encode_delete_block,
    encode_hfile_rows_block,
    encode_parquet_block,
)
from pyhudi.format.names import LogFileName, MarkerKind, join
from pyhudi.format.schema.conversion import META_FIELDS, RECORD_KEY, leave_out_fields
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import NewLog
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.base_file_writer import dictionary_columns
from pyhudi.write.log_settings import SMALL_BLOCK_BYTES, BlockFormat, LogSettings

BATCH_ROWS = 131_072
_DICTIONARY_BYTES_MIN = 4 << 20
"""From this many bytes of rows on, a Parquet block gets dictionaries for the columns where they pay. In a smaller block
trying them takes as long as encoding it, and compression makes repeated values small without them.
"""


@dataclass(frozen=True, slots=True)
class LogDestination:
    """Where blocks go. `instant`: of the delta commit. `partition`, `file_id`: of the file group. `marker`: the kind of
    the file's marker. `log`: the file's name, if the delta commit does not name it.
    """

    storage: Storage
    instant: str
    partition: str
    file_id: str
    write_token: str
    marker: MarkerKind
    log: NewLog | None = None

    def file(self, count: int) -> tuple[LogFileName, MarkerKind]:
        """The name of the next file after `count` files of this write, and the kind of its marker."""
        log = self.log or NewLog(self.instant, 1)
        name = LogFileName(self.file_id, log.instant, log.version + count, self.write_token)
        return name, self.marker


@dataclass(frozen=True, slots=True)
class LogRows:
    """Rows, or deletes, for one block after another, in order.

    `positions`: where each row stands in the base file of `base_instant`, ascending; None if one of them is not known.
    """

    rows: pa.Table
    positions: np.ndarray | None = None
    base_instant: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """A log file just written: how many rows and deletes are in it."""

    name: LogFileName
    size_bytes: int
    rows: int
    deletes: int


@dataclass(frozen=True, slots=True)
class BlockStyle:
    """How blocks are made. `schema_text`: of the rows, with meta fields, as Avro text. `is_partial`: rows hold only
    some of the table's columns. `compacted`: the instants that a log compaction merged. `compression`: of Parquet
    blocks that are not small. `fills_meta`: if off, the meta fields of rows are null. `left_out`: columns of the rows
    that blocks do not hold.
    """

    schema_text: str
    settings: LogSettings
    compression: str
    is_partial: bool = False
    compacted: tuple[str, ...] = ()
    fills_meta: bool = True
    left_out: tuple[str, ...] = ()


def write_log(
    destination: LogDestination, style: BlockStyle, rows: LogRows, deletes: LogRows, *, files_before: int = 0
) -> list[WrittenLog]:
    """Write the blocks of one file group: rows, then deletes (as `delete.DELETES`).

    A file that is large enough is followed by another. `files_before`: how many the instant has written here already.

    Memory: one block encoded. Spec: format/log-format.md section 4, "Writers". Raises: Conflict when the write ended.
    """
    written: list[WrittenLog] = []
    blocks = _blocks(destination.instant, style, rows, deletes)
    block = next(blocks, None)
    while block is not None:
        name, marker = destination.file(files_before + len(written))
        file = AttemptedFile(
            destination.storage, destination.instant, join(destination.partition, name.format()), marker,
            style.settings.content,
        )  # fmt: skip
        size_bytes = row_count = delete_count = 0

        file.begin()
        with destination.storage.put_stream(file.path) as sink:
            while block is not None and size_bytes < style.settings.file_size_max_bytes:
                sink.write(block.content)
                size_bytes += len(block.content)
                row_count += block.rows
                delete_count += block.deletes
                block = next(blocks, None)
            file.refuse_when_given_up()

        written.append(WrittenLog(name, file.shown_size(), row_count, delete_count))
    return written


def log_blocks(destination: LogDestination, style: BlockStyle, rows: LogRows, deletes: LogRows) -> list[LogBlock]:
    """The blocks that `write_log` would write, in memory."""
    content = b"".join(block.content for block in _blocks(destination.instant, style, rows, deletes))
    return list(read_blocks(content, path=join(destination.partition, destination.file_id)))


@dataclass(frozen=True, slots=True)
class _Block:
    content: bytes
    rows: int
    deletes: int


def _blocks(instant: str, style: BlockStyle, rows: LogRows, deletes: LogRows) -> Iterator[_Block]:
    text = leave_out_fields(style.schema_text, style.left_out)
    held = [name for name in rows.rows.column_names if name not in style.left_out]
    rows = replace(rows, rows=rows.rows.select(held))
    for part in _parts(rows, style.settings.block_size_max_bytes):
        header = data_header(
            instant_time=instant, schema_text=text, positions=part.positions,
            positions_base_instant=part.base_instant, is_partial=style.is_partial, compacted_instants=style.compacted,
        )  # fmt: skip
        yield _Block(_data_block(style, part.rows, header), len(part.rows), 0)

    size_max_bytes = style.settings.block_size_max_bytes
    for part in (part for same_kind in _by_kind(deletes) for part in _parts(same_kind, size_max_bytes)):
        batch = part.rows.combine_chunks().to_batches()[0]
        content = encode_delete_block(
            batch, instant_time=instant, schema_text=text, positions=part.positions,
            positions_base_instant=part.base_instant, compacted_instants=style.compacted, form=style.settings.content,
        )  # fmt: skip
        yield _Block(content, 0, len(batch))


def _data_block(style: BlockStyle, rows: pa.Table, header: Mapping[HeaderKey, str]) -> bytes:
    size_bytes = rows.nbytes
    is_small = size_bytes < SMALL_BLOCK_BYTES
    kind: BlockFormat = style.settings.block_format or ("avro" if is_small else "parquet")
    if not style.fills_meta and kind != "hfile":
        rows = _without_meta(rows)
    batches = rows.to_batches(max_chunksize=BATCH_ROWS)

    match kind:
        case "avro":
            return encode_avro_block(batches, header, form=style.settings.content)
        case "parquet":
            compression = style.settings.small_block_compression if is_small else style.compression
            dictionary = dictionary_columns(rows) if size_bytes >= _DICTIONARY_BYTES_MIN else ()
            return encode_parquet_block(
                batches, with_positions_passed_over(header), compression=compression, dictionary=dictionary
            )
        case "hfile":
            without = {key: text for key, text in header.items() if key not in _OF_POSITIONS}
            return encode_hfile_rows_block(
                batches, without, key_column=RECORD_KEY, as_null=() if style.fills_meta else META_FIELDS
            )
        case _:
            assert_never(kind)


def _without_meta(rows: pa.Table) -> pa.Table:
    """The rows with nulls in their meta fields. Seen: 0.15.0, 1.2.0 with `hoodie.populate.meta.fields=false`."""
    columns = [
        pa.nulls(len(rows), field.type) if field.name in META_FIELDS else column
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=rows.schema)


_OF_POSITIONS = (HeaderKey.RECORD_POSITIONS, HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
"""An HFile block has no positions: its rows are matched by their keys."""


def _parts(log_rows: LogRows, size_max_bytes: int) -> Iterator[LogRows]:
    """The rows in pieces of roughly at most so many bytes. No piece if there are no rows."""
    count = len(log_rows.rows)
    if not count:
        return

    part_count = -(-log_rows.rows.nbytes // size_max_bytes)
    step = -(-count // max(1, part_count))
    for start in range(0, count, step):
        positions = None if log_rows.positions is None else log_rows.positions[start : start + step]
        yield LogRows(log_rows.rows.slice(start, step), positions, log_rows.base_instant)


def _by_kind(deletes: LogRows) -> Iterator[LogRows]:
    """The deletes, split by the kind of their ordering values. Deletes without an ordering value have a kind of their
    own.

    Seen: hudi-rs 0.5 refuses a block that mixes kinds. Blocks of one instant give the same result in either order.
    """
    if not len(deletes.rows):
        return

    kinds = np.asarray(one_array(deletes.rows.column("ordering_kind")))
    found = np.unique(kinds)

    for kind in found:
        chosen = kinds == kind
        positions = None if deletes.positions is None else deletes.positions[chosen]
        rows = deletes.rows if len(found) == 1 else deletes.rows.filter(pa.array(chosen))
        yield LogRows(rows, positions, deletes.base_instant)


def in_base_order(rows: pa.Table, positions: np.ndarray, base_instant: str | None) -> LogRows:
    """The rows in the order of their positions in the base file.

    Rows stay as they are, without positions, if one of them has none (-1) or two have the same.
    Spec: format/log-format.md section 3.
    """
    if base_instant is None or not len(rows) or int(positions.min()) < 0:
        return LogRows(rows)

    order = np.argsort(positions, kind="stable")
    ascending = positions[order].astype(np.uint64)
    if (ascending[1:] == ascending[:-1]).any():
        return LogRows(rows)
    return LogRows(rows.take(pa.array(order)), ascending, base_instant)


def delete_rows(rows: pa.Table, partition: str, ordering: Sequence[str], is_commit_time: np.ndarray) -> pa.Table:
    """Rows as deletes of their keys, as `delete.DELETES`.

    `ordering`: the columns whose values the deletes carry. `is_commit_time`: the deletes that carry none and win over
    all.
    """
    columns = [one_array(rows.column(name)) for name in ordering]
    if is_commit_time.any():
        mask = pa.array(is_commit_time)
        columns = [pc.if_else(mask, pa.scalar(None, column.type), column) for column in columns]
    keys = one_array(rows.column(RECORD_KEY))
    return pa.Table.from_batches([make_deletes(keys, pa.repeat(partition, len(keys)), columns)])
