"""What we write under rules that make one row of two could come to other rows for Apache Hudi 1.2.0: duplicates of a
batch that we settled before, logs that it merges, and base files that we merged and compacted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.mor_tables import BLOCK_FORMAT, POSITIONS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

MODEL = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.compaction.payload.class"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("a", pa.string()), ("b", pa.string())])
POSTGRES = pa.schema(
    [*(f for f in SCHEMA if f.name != "ts"), ("_event_lsn", pa.int64()), ("_change_operation_type", pa.string())]
)
MODES: dict[str, dict[str, str]] = {
    "partial payload": {PAYLOAD: f"{MODEL}PartialUpdateAvroPayload"},
    "nondefaults payload": {PAYLOAD: f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload"},
    "delete field": {"hoodie.payload.delete.field": "b", "hoodie.payload.delete.marker": "D"},
    "postgres": {PAYLOAD: f"{MODEL}debezium.PostgresDebeziumAvroPayload"},
}
TOASTED = "__debezium_unavailable_value"
Listed = list[tuple[str, int, int | None, str | None, str | None]]
BATCHES: list[Listed] = [
    [("k0", 5, 1, "x", "y"), ("k1", 5, 2, None, "y"), ("k2", 5, 3, "x", None), ("k3", 5, 4, "x", "y"),
     ("k4", 5, None, "x", "y"), ("k5", 5, 6, "x", "y"), ("k6", 5, 7, "x", "y")],
    [("k0", 6, None, "new", None), ("k1", 4, 9, "late", "late"), ("k2", 5, None, None, "tie"), ("k3", 6, 0, "x", "D"),
     ("k4", 7, None, "first", None), ("k4", 8, 8, None, "second"), ("k5", 9, None, TOASTED, TOASTED)],
    [("k0", 5, 3, None, "between"), ("k2", 7, 5, None, None), ("k5", 8, 0, "earlier", "earlier"),
     ("k3", 7, 1, "again", None)],
]  # fmt: skip


def batch(mode: str, rows: Listed) -> pa.Table:
    if mode != "postgres":
        return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    listed = [
        {"id": k, "v": v, "a": a, "b": b, "_event_lsn": ts, "_change_operation_type": "d" if b == "D" else "u"}
        for k, ts, v, a, b in rows
    ]
    return pa.Table.from_pylist(listed, POSTGRES)


def new_table(path: Path, mode: str, kind: str, version: int = 9, block_format: str = "parquet") -> HudiTable:
    return HudiTable.create(
        path, name="modes", record_key="id", ordering="_event_lsn" if mode == "postgres" else "ts", table_type=kind,
        table_version=version,
        properties={**MODES[mode], BLOCK_FORMAT: block_format, "hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("block_format", ["parquet", "avro"])
def test_hudi_120_reads_our_logs_as_we_do(
    tmp_path: Path, hudi_120: ReferenceHudi, mode: str, block_format: str
) -> None:
    table = new_table(tmp_path / "t", mode, "MERGE_ON_READ", block_format=block_format)
    for rows in BATCHES:
        table.upsert(batch(mode, rows))
    for at in ("logs", "a delete", "base file"):
        if at == "a delete":
            table.delete(pa.table({"id": ["k6"]}))
        if at == "base file":
            table.compact()
        ours = table.scan().to_arrow()
        assert len(ours) == 7 if at == "logs" and mode in ("partial payload", "nondefaults payload") else len(ours) > 2
        for positions in (True, False):
            assert_same_rows(hudi_120.read(table.path, **{POSITIONS: positions}), ours)


@pytest.mark.parametrize("mode", MODES)
def test_hudi_120_writes_the_same_rows_to_a_table_of_base_files(
    tmp_path: Path, hudi_120: ReferenceHudi, mode: str
) -> None:
    """The same batches, by it and by us, upon tables that we made; and it goes on where we end."""
    ours, theirs = (new_table(tmp_path / who, mode, "COPY_ON_WRITE") for who in ("ours", "theirs"))
    own = batch(mode, BATCHES[0]).column_names
    for rows in BATCHES:
        ours.upsert(batch(mode, rows))
        hudi_120.write(theirs.path, batch(mode, rows), operation="upsert", **{
            "hoodie.datasource.write.recordkey.field": "id", "hoodie.metadata.enable": "true",
            "hoodie.table.name": "modes", "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.table.ordering.fields": "_event_lsn" if mode == "postgres" else "ts",
        })  # fmt: skip
        found = ours.scan(meta_fields=False).to_arrow()
        assert_same_rows(hudi_120.read(theirs.path).select(own), found.select(own))
        assert_same_rows(hudi_120.read(ours.path).select(own), found.select(own))
