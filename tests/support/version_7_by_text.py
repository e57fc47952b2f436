"""A merge-on-read table of version 7, laid down by the specification's text alone: no code of pyhudi writes it.

One commit has been archived, as the text has it: a Parquet file below `.hoodie/archived`, a manifest, `_version_`, and
the metadata as JSON. A delta commit followed it, whose log is called after the delta commit. The names of completed
actions say both times. The text leaves open whether the metadata of a commit is JSON or Avro: `form` chooses.
"""

import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

INSERTED, INSERT_DONE = "20231115080000000", "20231115080000900"
UPDATED, UPDATE_DONE = "20231115080100000", "20231115080100900"
NEVER = "20231115080200000"
GROUP = "0d2ac6f7-6a7b-4a9d-9a36-0a6f0b1f8e11-0"
BASE = f"{GROUP}_0-1-0_{INSERTED}.parquet"
LOG = f".{GROUP}_{UPDATED}.log.1_0-2-0"
DEAD_LOG = f".{GROUP}_{NEVER}.log.1_0-3-0"

_META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path",
         "_hoodie_file_name")  # fmt: skip
_SCHEMA = {
    "type": "record", "name": "trips",
    "fields": [{"name": name, "type": ["null", "string"], "default": None} for name in (*_META, "id", "city")]
    + [{"name": "ts", "type": ["null", "long"], "default": None}],
}  # fmt: skip
_STATED = {**_SCHEMA, "fields": _SCHEMA["fields"][len(_META) :]}
_STAT = {
    "type": "record", "name": "HoodieWriteStat", "namespace": "org.apache.hudi.avro.model",
    "fields": [{"name": name, "type": ["null", kind], "default": None}
               for name, kind in (("fileId", "string"), ("path", "string"), ("prevCommit", "string"),
                                  ("numWrites", "long"), ("fileSizeInBytes", "long"), ("partitionPath", "string"))],
}  # fmt: skip
_COMMIT = {
    "type": "record", "name": "HoodieCommitMetadata", "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "partitionToWriteStats", "default": None,
         "type": ["null", {"type": "map", "values": {"type": "array", "items": _STAT}}]},
        {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}], "default": None},
        {"name": "operationType", "type": ["null", "string"], "default": None},
    ],
}  # fmt: skip


def _record(time: str, key: str, city: str, ts: int) -> dict[str, Any]:
    return {**dict(zip(_META, (time, f"{time}_0_0", key, city, BASE), strict=True)), "id": key, "city": city, "ts": ts}


def lay_down(folder: Path, form: str) -> None:
    """`form`: `json` or `avro`, of the delta commit's metadata."""
    hoodie, partition = folder / ".hoodie", folder / "oslo"
    (hoodie / "archived").mkdir(parents=True)
    partition.mkdir()
    _properties(hoodie)

    stored = [_record(INSERTED, key, "oslo", 1) for key in ("a", "b", "c")]
    pq.write_table(pa.Table.from_pylist(stored), partition / BASE)
    (partition / ".hoodie_partition_metadata").write_text(f"commitTime={INSERTED}\npartitionDepth=1\n")
    changed = [_record(UPDATED, "a", "oslo", 2), _record(UPDATED, "d", "oslo", 2)]
    (partition / LOG).write_bytes(_rows_block(UPDATED, changed) + _delete_block(UPDATED, "b", "oslo"))
    (partition / DEAD_LOG).write_bytes(_rows_block(NEVER, [_record(NEVER, "c", "oslo", 9)]))

    insert = _commit(BASE, (partition / BASE).stat().st_size, 3, "null", "INSERT")
    _archive(hoodie / "archived", insert)
    update = _commit(LOG, (partition / LOG).stat().st_size, 2, INSERTED, "UPSERT")
    (hoodie / f"{UPDATED}.deltacommit.requested").write_bytes(b"")
    (hoodie / f"{UPDATED}.deltacommit.inflight").write_bytes(b"")
    (hoodie / f"{UPDATED}_{UPDATE_DONE}.deltacommit").write_bytes(
        json.dumps(update).encode() if form == "json" else _container(update)
    )
    (hoodie / f"{NEVER}.deltacommit.requested").write_bytes(b"")
    (hoodie / f"{NEVER}.deltacommit.inflight").write_bytes(b"")


def _properties(hoodie: Path) -> None:
    stated = {
        "hoodie.table.name": "trips", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "7",
        "hoodie.table.recordkey.fields": "id", "hoodie.table.partition.fields": "city",
        "hoodie.table.precombine.field": "ts", "hoodie.timeline.layout.version": "1",
        "hoodie.table.timeline.timezone": "UTC", "hoodie.table.checksum": str(zlib.crc32(b".trips")),
    }  # fmt: skip
    (hoodie / "hoodie.properties").write_text("".join(f"{name}={text}\n" for name, text in stated.items()))


def _commit(name: str, size: int, count: int, before: str, operation: str) -> dict[str, Any]:
    stat = {
        "fileId": GROUP, "path": f"oslo/{name}", "prevCommit": before, "numWrites": count, "fileSizeInBytes": size,
        "partitionPath": "oslo",
    }  # fmt: skip
    return {
        "partitionToWriteStats": {"oslo": [stat]}, "extraMetadata": {"schema": json.dumps(_STATED)},
        "operationType": operation,
    }  # fmt: skip


def _container(commit: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(_COMMIT), [commit])
    return out.getvalue()


def _archive(folder: Path, commit: dict[str, Any]) -> None:
    name = f"{INSERTED}_{INSERT_DONE}_0.parquet"  # from the least begin time to the greatest completion time
    row = {
        "instantTime": INSERTED, "completionTime": INSERT_DONE, "action": "commit",
        "metadata": json.dumps(commit).encode(), "plan": None,
    }  # fmt: skip
    columns = [("instantTime", pa.string()), ("completionTime", pa.string()), ("action", pa.string()),
               ("metadata", pa.binary()), ("plan", pa.binary())]  # fmt: skip
    pq.write_table(pa.Table.from_pylist([row], pa.schema(columns)), folder / name)
    manifest = {"files": [{"fileName": name, "fileLen": (folder / name).stat().st_size}]}
    (folder / "manifest_1").write_text(json.dumps(manifest))
    (folder / "_version_").write_text("1")


def _block(kind: int, header: dict[int, str], content: bytes) -> bytes:
    """`kind`, and the keys of `header`: as written, one less than the numbers in the text."""
    head = struct.pack(">i", len(header))
    for key, text in header.items():
        head += struct.pack(">ii", key, len(text)) + text.encode()
    body = struct.pack(">ii", 1, kind) + head + struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def _rows_block(time: str, rows: list[dict[str, Any]]) -> bytes:
    content = struct.pack(">ii", 3, len(rows))
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(_SCHEMA), row)
        content += struct.pack(">i", len(out.getvalue())) + out.getvalue()
    return _block(3, {0: time, 2: json.dumps(_SCHEMA)}, content)


def _delete_block(time: str, key: str, partition: str) -> bytes:
    """As the text has it: by Java's Kryo serializer. An ordering value of 0 says that the delete wins."""
    deletes = (
        b"\x01\x00[Lorg.apache.hudi.common.model.DeleteRecord\xbb\x01\x02"
        b"\x01\x01org.apache.hudi.common.model.DeleteRecor\xe4\x01"
        b"\x01\x02org.apache.hudi.common.model.HoodieKe\xf9\x01"
        b"\x01" + partition[:-1].encode() + bytes([ord(partition[-1]) | 0x80])
        + b"\x01\x82" + key.encode() + b"\x02\x00"
    )  # fmt: skip
    content = struct.pack(">ii", 2, len(deletes)) + deletes
    return _block(1, {0: time, 2: json.dumps(_SCHEMA)}, content)
