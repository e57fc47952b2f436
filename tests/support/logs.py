"""Small logs for tests, and sources that count what is read of them."""

import json
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.format.log.block import HeaderKey, LogBlock
from pyhudi.format.log.delete import make_deletes
from pyhudi.format.log.headers import data_header
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.log.writer import (
    encode_avro_block,
    encode_delete_block,
    encode_hfile_rows_block,
    encode_parquet_block,
    encode_rollback_block,
)

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "_hoodie_record_key", "type": ["null", "string"], "default": None},
            {"name": "n", "type": "long"},
            {"name": "text", "type": ["null", "string"], "default": None},
        ],
    }
)
COLUMNS = pa.schema([pa.field("_hoodie_record_key", pa.string()), pa.field("n", pa.int64()), ("text", pa.string())])


@dataclass
class CountedLog:
    """A log in memory that notes each range read of it."""

    data: bytes
    reads: list[tuple[int, int]] = field(default_factory=list)

    def read_at(self, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return self.data[offset : offset + size]


def header(instant: str = "001", schema: str = SCHEMA) -> dict[HeaderKey, str]:
    return data_header(instant_time=instant, schema_text=schema)


def rows(count: int, *, text: str = "") -> pa.RecordBatch:
    keys = [f"k{index:06d}" for index in range(count)]
    return pa.RecordBatch.from_pydict(
        {"_hoodie_record_key": keys, "n": list(range(count)), "text": [text or None] * count}, schema=COLUMNS
    )


def small_log() -> list[bytes]:
    """A block of each kind that is written, and a rollback between them."""
    deletes = make_deletes(pa.array(["k1", "k2"]), pa.array(["p", "p"]), [pa.array([5, None], pa.int64())])
    return [
        encode_avro_block([rows(3, text="é")], header("001")),
        encode_delete_block(deletes, instant_time="001", schema_text=SCHEMA),
        encode_rollback_block(instant_time="003", target_instant_time="002"),
        encode_hfile_rows_block([rows(2)], header("004"), key_column="_hoodie_record_key"),
        encode_parquet_block([rows(2)], header("005"), compression="gzip"),
        encode_avro_block([], header("006")),
    ]


def scanned(data: bytes) -> list[LogBlock]:
    return list(scan_log(MemoryLog(data), len(data), path="x"))
