"""Tables with a column of timestamp-millis, as Flink and HoodieStreamer make them.

Made of a table of whole numbers: base files, statistics, keys and delete blocks then hold the same bytes, so that no
code under test has written what a test reads. Only the schemas change, in commits, footers and log blocks.
"""

import io
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi import HudiTable
from pyhudi.format.log.block import encode_block
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.names import PROPERTIES
from pyhudi.format.properties import decode_table_properties, encode_table_properties
from pyhudi.format.timeline.action_files import decode_commit, encode_commit_avro, encode_commit_json
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage

SECOND = 1_000
NOON = 1_767_268_800_000
"""12:00 on 1 January 2026 in UTC, in milliseconds since 1970."""

KINDS = {
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
}


def moment(ms: int, logical: str = "timestamp-millis") -> pa.Scalar:
    """The moment as Arrow data of callers have it, in microseconds."""
    return pa.scalar(1_000 * ms, pa.timestamp("us", KINDS[logical].tz))


def moments(*ms: int, logical: str = "timestamp-millis") -> pa.Array:
    return pa.array([1_000 * one for one in ms], pa.timestamp("us", KINDS[logical].tz))


def in_millis(
    storage: MemoryStorage, *, version: int = 9, column: str = "at", logical: str = "timestamp-millis"
) -> None:
    """Make a column of type long, which may be null, one of milliseconds."""
    before = _field(column, "long")
    after = _field(column, {"type": "long", "logicalType": logical})
    has_avro = version >= 8

    for path in [
        file.path for file in storage.list("", recursive=True) if not file.path.startswith(".hoodie/metadata/")
    ]:
        content = storage.get(path)
        if path.startswith(".hoodie/"):
            if path.endswith("commit"):
                commit = decode_commit(content, path=path)
                texts = {name: text.replace(before, after) for name, text in commit.extra_metadata.items()}
                encode = encode_commit_avro if has_avro else encode_commit_json
                storage.put(path, encode(replace(commit, extra_metadata=texts)))
        elif path.endswith(".parquet"):
            storage.put(path, _file_in_millis(content, column, logical, before, after))
        elif ".log." in path:
            blocks = [
                encode_block(one.type, {k: t.replace(before, after) for k, t in one.header.items()}, one.read_content())
                for one in read_blocks(content, path=path)
            ]
            storage.put(path, b"".join(blocks))


def _field(name: str, kind: object) -> str:
    return json.dumps({"name": name, "type": ["null", kind], "default": None}, separators=(",", ":"))


def _file_in_millis(content: bytes, column: str, logical: str, before: str, after: str) -> bytes:
    rows = pq.read_table(io.BytesIO(content))
    entries = pq.read_metadata(io.BytesIO(content)).metadata or {}
    at = rows.schema.get_field_index(column)
    rows = rows.set_column(at, column, rows[column].cast(KINDS[logical]))
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, rows.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(rows.replace_schema_metadata(None))
        kept = {key.decode(): text.decode() for key, text in entries.items() if key != b"ARROW:schema"}
        writer.add_key_value_metadata({key: text.replace(before, after) for key, text in kept.items()})
    return sink.getvalue()


def create_in_millis(
    storage: Storage, schema: pa.Schema, *, logical: str = "timestamp-millis", record_key: str = "id", **facts: Any
) -> HudiTable:
    """A new table whose columns of microseconds become ones of milliseconds, at any depth, before it has a row."""
    HudiTable.create("", storage=storage, name="t", record_key=record_key, schema=schema, **facts)
    properties = decode_table_properties(storage.get(PROPERTIES), path=PROPERTIES)
    micros = logical.replace("millis", "micros")
    text = properties["hoodie.table.create.schema"].replace(f'"{micros}"', f'"{logical}"')
    changed = {**properties, "hoodie.table.create.schema": text}
    storage.put(PROPERTIES, encode_table_properties(changed, epoch_ms=0, is_update=True))
    return HudiTable.open("", storage=storage)
