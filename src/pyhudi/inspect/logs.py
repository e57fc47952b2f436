"""The blocks of log files, and their records, as values to look at."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.format.json_rows import json_texts
from pyhudi.format.log.block import BlockType, HeaderKey, LogBlock
from pyhudi.format.log.data import read_batches, read_row_count
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.reader import scan_log
from pyhudi.format.names import LogFileName, join
from pyhudi.table.slices.slice_log import log_source

_WITH_ROWS: Final = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.CDC_DATA})


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A block of a log. `records`: rows or deletes; 0 for other blocks. `instant`: made up where the block has none."""

    instant: str
    records: int
    type: str
    header: Mapping[HeaderKey, str]

    @property
    def header_text(self) -> str:
        """The header as JSON."""
        entries = {key.name: text for key, text in self.header.items()}
        return json.dumps(entries, separators=(",", ":"), ensure_ascii=False)


def read_log_blocks(table: HudiTable, pattern: str) -> Iterator[ShownBlock]:
    """The blocks of the log files whose paths match, by path and in file order. One request for a small block.

    `pattern`: of absolute paths, in which `*` stands for any text.
    """
    numbers = {"corrupt_block": 0, "dummy_instant_time": 0}
    for block in _blocks(table, pattern):
        instant = block.header.get(HeaderKey.INSTANT_TIME)
        if instant is None:
            made_up = "corrupt_block" if block.type is BlockType.CORRUPT else "dummy_instant_time"
            numbers[made_up] += 1
            instant = f"{made_up}_{numbers[made_up]}"
        yield ShownBlock(instant, _count(block), _type_name(block.type), block.header)


def read_log_records(table: HudiTable, pattern: str) -> Iterator[str]:
    """The rows of data blocks as JSON, in file order. Memory: a batch. `pattern`: as of `read_log_blocks`."""
    for block in _blocks(table, pattern):
        if block.type in _WITH_ROWS:
            for batch in read_batches(block):
                rows = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
                yield from json_texts(rows).to_pylist()


def _blocks(table: HudiTable, pattern: str) -> Iterator[LogBlock]:
    snapshot = table._access.snapshot()
    root, wanted = table.path.rstrip("/"), _bare(pattern)
    for partition in snapshot.listing.partitions():
        for file in sorted(snapshot.listing.files(partition), key=lambda one: one.name):
            path = join(partition, file.name)
            if LogFileName.parse(file.name) is not None and fnmatchcase(_bare(f"{root}/{path}"), wanted):
                _, source, size_bytes = log_source(snapshot.storage, path, file.size_bytes)
                yield from scan_log(source, size_bytes, path=path)


def _count(block: LogBlock) -> int:
    if block.type in _WITH_ROWS:
        return read_row_count(block)
    return len(read_deletes(block)) if block.type is BlockType.DELETE else 0


def _type_name(kind: BlockType) -> str:
    """The name that Apache Hudi has for it, such as AVRO_DATA_BLOCK."""
    return f"{kind.name}_BLOCK"


def _bare(path: str) -> str:
    """A path without the scheme of this machine's files: `file:///a` and `/a` are one."""
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path
