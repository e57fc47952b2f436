"""A value could change on its way between Arrow and Avro, or a row could be cut in another place.

Random schemas and rows go through fastavro on one side and the codec on the other, in both directions.
"""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.format.avro import decoding, encoding
from pyhudi.format.avro.decode import RowDecoder
from pyhudi.format.avro.encode import RowEncoder
from pyhudi.format.avro.framing import find_rows
from pyhudi.loops import dispatch
from pyhudi.loops.dispatch import Loop
from tests.support.avro_rows import as_written, column_of, decode_rows, encode_rows, schemas_with_rows

PATIENT = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


@PATIENT
@given(schemas_with_rows(), st.binary(max_size=3))
def test_rows_of_fastavro_become_columns(case: tuple, gap: bytes) -> None:
    schema, rows, expected = case
    content, starts, ends = encode_rows(schema, rows, gap=gap)
    batch = RowDecoder(schema).decode(content, starts, ends)
    batch.validate(full=True)
    assert batch.to_pylist() == expected
    backwards = RowDecoder(schema).decode(content, starts[::-1], ends[::-1])
    assert backwards.to_pylist() == expected[::-1]


@PATIENT
@given(schemas_with_rows(), st.data())
def test_some_columns_are_those_of_all(case: tuple, data: st.DataObject) -> None:
    schema, rows, expected = case
    content, starts, ends = encode_rows(schema, rows)
    decoder = RowDecoder(schema)
    chosen = data.draw(st.lists(st.sampled_from(decoder.schema.names), unique=True))
    batch = RowDecoder(schema, columns=chosen).decode(content, starts, ends)
    batch.validate(full=True)
    assert batch.schema.names == chosen
    assert batch.num_rows == len(rows)
    for name in chosen:
        assert column_of(batch, name) == [row[name] for row in expected]


@PATIENT
@given(schemas_with_rows(), st.booleans(), st.data())
def test_columns_become_rows_that_fastavro_reads(case: tuple, is_framed: bool, data: st.DataObject) -> None:
    schema, rows, expected = case
    batch = RowDecoder(schema).decode(*encode_rows(schema, rows))
    start = data.draw(st.integers(0, len(rows)))
    made = RowEncoder(schema).encode(batch.slice(start), is_framed=is_framed)
    content = made.content.tobytes()
    assert as_written(decode_rows(schema, content, made.starts, made.ends)) == as_written(
        decode_rows(schema, *encode_rows(schema, rows[start:]))
    )
    again = RowDecoder(schema).decode(content, made.starts, made.ends)
    assert again.to_pylist() == expected[start:]
    if is_framed:
        starts, ends = find_rows(content, len(rows) - start)
        assert (starts.tolist(), ends.tolist()) == (made.starts.tolist(), made.ends.tolist())
    else:
        assert made.content.size == made.ends.max(initial=0)


@PATIENT
@given(schemas_with_rows(depth=1))
def test_columns_from_python_values_become_the_same_rows(case: tuple) -> None:
    schema, _, expected = case
    batch = pa.RecordBatch.from_pylist(expected, schema=RowDecoder(schema).schema)
    made = RowEncoder(schema).encode(batch)
    assert RowDecoder(schema).decode(made.content.tobytes(), made.starts, made.ends).to_pylist() == expected


def test_the_loops_are_compiled_once_whatever_the_schema_and_the_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "CALL_MAX", -1)
    kinds = ("long", ["null", "string"], {"type": "array", "items": "double"}, {"type": "map", "values": "bytes"})
    for kind in kinds:
        schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]})
        made = RowEncoder(schema).encode(pa.RecordBatch.from_pylist([], schema=RowDecoder(schema).schema))
        content, bounds = made.content.tobytes(), made.starts
        fixed = bounds.copy()
        fixed.setflags(write=False)
        for data in (content, bytearray(content), memoryview(content), pa.py_buffer(content)):
            for starts in (bounds, fixed, bounds[::-1]):
                RowDecoder(schema).decode(data, starts, starts)
    for loop in (decoding.run, encoding.run):
        assert isinstance(loop, Loop)
        assert len(loop.compiled.signatures) == 1  # type: ignore[attr-defined]  # numba's


def test_all_bits_of_floats_survive() -> None:
    schema = '{"type":"record","name":"r","fields":[{"name":"f","type":"float"},{"name":"d","type":"double"}]}'
    four = np.array([0x7FC00001, 0xFFC12345, 0x7F800000, 0x80000000, 1], np.uint32)
    eight = np.array([0x7FF8000000000001, 0xFFF8123456789ABC, 0xFFF0000000000000, 1 << 63, 1], np.uint64)
    batch = pa.RecordBatch.from_arrays([pa.array(four.view(np.float32)), pa.array(eight.view(np.float64))], ["f", "d"])
    made = RowEncoder(schema).encode(batch)
    assert made.content[:12].tobytes() == four[:1].tobytes() + eight[:1].tobytes()
    back = RowDecoder(schema).decode(made.content.tobytes(), made.starts, made.ends)
    assert back.column(0).to_numpy().view(np.uint32).tolist() == four.tolist()
    assert back.column(1).to_numpy().view(np.uint64).tolist() == eight.tolist()


def test_a_large_batch_is_written_in_slices_that_join() -> None:
    schema = '{"type":"record","name":"r","fields":[{"name":"s","type":["null","string"]},{"name":"n","type":"long"}]}'
    count = 200_000
    numbers = pa.array(np.arange(count))
    texts = pa.array([None if number % 7 == 0 else f"text {number}" for number in range(count)])
    batch = pa.RecordBatch.from_arrays([numbers, texts], ["n", "s"])
    made = RowEncoder(schema).encode(batch, is_framed=True)
    starts, ends = find_rows(made.content.tobytes(), count)
    back = RowDecoder(schema, columns=["n", "s"]).decode(made.content.tobytes(), starts, ends)
    assert back == batch


def test_a_name_means_the_type_of_its_namespace_first() -> None:
    """The type without a namespace counts only where the namespace has none of this name."""
    own = {"type": "record", "name": "P", "fields": [{"name": "y", "type": "string"}]}
    inner = [{"name": "p1", "type": own}, {"name": "p2", "type": "P"}, {"name": "s", "type": "S"}]
    fields = [
        {"name": "a", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}},
        {"name": "s", "type": {"type": "enum", "name": "S", "symbols": ["one"]}},
        {"name": "b", "type": {"type": "record", "name": "Q", "namespace": "n", "fields": inner}},
        {
            "name": "c",
            "type": {"type": "record", "name": "R", "namespace": None, "fields": [{"name": "p", "type": "P"}]},
        },
    ]
    text = json.dumps({"type": "record", "name": "T", "fields": fields})
    content = bytes([2, 0, 2]) + b"k" + bytes([4]) + b"ll" + bytes([0, 4])
    batch = RowDecoder(text).decode(content, np.array([0]), np.array([len(content)]))
    assert batch.to_pylist() == [
        {"a": {"x": 1}, "s": "one", "b": {"p1": {"y": "k"}, "p2": {"y": "ll"}, "s": "one"}, "c": {"p": {"x": 2}}}
    ]
