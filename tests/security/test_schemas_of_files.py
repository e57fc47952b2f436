"""An Avro file brings the schema that it is read by: a few hundred bytes could end the process, or fill its memory.

Each hostile file is read in a process of its own with little memory, through the calls that meet it.
"""

import json
import resource
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiError, HudiTable, Unsupported
from pyhudi.format.avro.container import MAGIC, decode_container, encode_container
from pyhudi.format.avro.types import parse_schema
from pyhudi.format.hfile.block import decode_block, encode_block
from pyhudi.format.hfile.trailer import Codec
from pyhudi.format.timeline.action_files import decode_commit, decode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.schema_on_read import read_history
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout

MEMORY_BYTES = 3 << 30
DATA_MAGIC = b"DATABLK*"
SECONDS = 20
LATEST = '{"version_id":1,"fields":[{"id":0,"name":"a","type":"int"}]}'


def record(name: str, fields: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": fields}


def doubling(levels: int, leaf: object = "null") -> dict[str, object]:
    """Records that each hold the one before twice."""
    kind: object = leaf
    for level in range(levels):
        first = {"name": "a", "type": record(f"r{level}", [{"name": "x", "type": kind}]) if level == 0 else kind}
        kind = record(f"d{level}", [first, {"name": "b", "type": f"d{level - 1}" if level else "r0"}])
    return record("HoodieRollbackPlan", [{"name": "f", "type": kind}])


HOSTILE = {
    "a record that holds itself": record("HoodieRollbackPlan", [{"name": "f", "type": "HoodieRollbackPlan"}]),
    "one that may hold itself": record("HoodieRollbackPlan", [{"name": "f", "type": ["null", "HoodieRollbackPlan"]}]),
    "an array of nulls": record("HoodieRollbackPlan", [{"name": "f", "type": {"type": "array", "items": "null"}}]),
    "an array of records of nulls": record(
        "HoodieRollbackPlan",
        [{"name": "f", "type": {"type": "array", "items": record("e", [{"name": "n", "type": "null"}])}}],
    ),
    "an array whose items are a byte and a thousand nulls": record(
        "HoodieRollbackPlan",
        [
            {
                "name": "f",
                "type": {
                    "type": "array",
                    "items": record(
                        "e",
                        [{"name": "b", "type": "boolean"}, *({"name": f"n{n}", "type": "null"} for n in range(1_000))],
                    ),
                },
            }
        ],
    ),
    "doubling records": doubling(40),
    "doubling records of text": doubling(40, "string"),
    "types nested deeply": json.loads(
        '{"type":"record","name":"HoodieRollbackPlan","fields":[{"name":"f","type":'
        + '{"type":"array","items":' * 400 + '"int"' + "}" * 400 + "}]}"
    ),
}  # fmt: skip


def container(schema_text: str, body: bytes, codec: bytes = b"null") -> bytes:
    """A container file of one record, as anybody can make it."""

    def long(value: int) -> bytes:
        out, rest = bytearray(), (value << 1) ^ (value >> 63)
        while rest > 0x7F:
            out.append((rest & 0x7F) | 0x80)
            rest >>= 7
        return bytes([*out, rest])

    def text(data: bytes) -> bytes:
        return long(len(data)) + data

    entries = text(b"avro.schema") + text(schema_text.encode()) + text(b"avro.codec") + text(codec)
    sync = bytes(16)
    return MAGIC + long(2) + entries + long(0) + sync + long(1) + text(body) + sync


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def run_limited(code: str, *arguments: str) -> str:
    """What a process prints that has little memory and time; fails where it ends otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True, timeout=SECONDS,
        preexec_fn=limited, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def test_schemas_that_end_a_process_are_refused(tmp_path: Path) -> None:
    for number, schema in enumerate(HOSTILE.values()):
        (tmp_path / f"{number}.avro").write_bytes(container(json.dumps(schema), bytes([0x7E, *bytes(200)])))
        (tmp_path / f"{number}.json").write_text(json.dumps(schema))

    said = run_limited(
        """
        import sys
        from pathlib import Path
        from pyhudi import HudiError
        from pyhudi.format.avro.types import parse_schema
        from pyhudi.format.timeline.action_files import decode_rollback_plan
        for file in sorted(Path(sys.argv[1]).iterdir()):
            try:
                parse_schema(file.read_text()) if file.suffix == ".json" else decode_rollback_plan(
                    file.read_bytes(), path=file.name
                )
            except HudiError as error:
                print(file.name, type(error).__name__)
        """,
        str(tmp_path),
    )
    expected = [f"{n}.{kind}" for n in range(len(HOSTILE)) for kind in ("avro CorruptFile", "json Unsupported")]
    assert said.splitlines() == expected


@pytest.mark.parametrize("what", HOSTILE)
def test_a_timeline_file_with_such_a_schema_is_told_by_name(tmp_path: Path, what: str) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.upsert(pa.table({"id": ["a"]}))
    (commit,) = (tmp_path / "t/.hoodie/timeline").glob("*_*.commit")
    schema = {**HOSTILE[what], "name": "HoodieCommitMetadata"}
    commit.write_bytes(container(json.dumps(schema).replace("HoodieRollbackPlan", "HoodieCommitMetadata"), bytes(300)))

    for call in (lambda: table.scan(), lambda: table.upsert(pa.table({"id": ["b"]}))):
        with pytest.raises(HudiError) as caught:
            call()
        assert commit.name in str(caught.value)


def test_wide_schemas_of_tables_are_read() -> None:
    fields = [{"name": f"c{n}", "type": ["null", "string"], "default": None} for n in range(20_000)]
    assert len(parse_schema(json.dumps(record("t", fields))).fields) == 20_000


def test_a_few_compressed_bytes_do_not_become_many() -> None:
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = b"".join([packer.compress(bytes(1 << 24)) for _ in range(40)]) + packer.flush()
    assert len(packed) < 1 << 20
    text = json.dumps(record("HoodieRollbackPlan", [{"name": "f", "type": "bytes"}]))

    with pytest.raises(CorruptFile, match="stored bytes that come to more than"):
        decode_rollback_plan(container(text, packed, b"deflate"), path="plan")


def test_a_compressed_record_of_ordinary_size_is_read() -> None:
    text = json.dumps(record("r", [{"name": "f", "type": "string"}]))
    body = encode_container(text, {"f": "x" * 1_000})
    plain = decode_container(body, {"r": text}, path="p")
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(b"\xd0\x0f" + b"x" * 1_000) + packer.flush()
    assert decode_container(container(text, packed, b"deflate"), {"r": text}, path="p") == plain


def test_a_block_of_an_hfile_says_how_large_it_becomes_and_is_held_to_it() -> None:
    block = encode_block(DATA_MAGIC, bytes(64 << 20), codec=Codec.GZ)
    assert len(block) < 1 << 20

    with pytest.raises(CorruptFile, match="at most 16,777,216 bytes out of"):
        decode_block(memoryview(block), 0, magic=DATA_MAGIC, codec=Codec.GZ, path="f")


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' + b"9" * 5_000 + b"}", b"\xff{}"])
def test_json_that_breaks_a_parser_is_told(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode_commit(content, path="c")
    storage = MemoryStorage()
    storage.put_new(".hoodie/.schema/1_2.schemacommit", content)
    later = Instant("20260201000000000", "commit", "COMPLETED", "20260201000000001")
    timeline = Timeline(timeline_layout({"hoodie.timeline.layout.version": "2"}), (later,))
    with pytest.raises(CorruptFile, match="1_2"):
        read_history(storage, timeline, '{"version_id": 0, "fields": []}')


def test_what_takes_no_bytes_is_refused_in_schemas_of_logs_too() -> None:
    for schema in HOSTILE.values():
        with pytest.raises(Unsupported):
            parse_schema(json.dumps(schema))
