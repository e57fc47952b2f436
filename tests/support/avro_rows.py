"""Random Avro schemas with rows of theirs, as fastavro takes them and as Arrow answers them."""

import io
import itertools
import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

_EPOCH = datetime(1970, 1, 1)
_MICROS_MAX = 253_402_300_799_999_999  # the last of the year 9999
_EXACT = Context(prec=60)


@dataclass(frozen=True)
class Kind:
    """A type: its schema, and its values as pairs (fastavro's, Arrow's)."""

    schema: Any
    values: st.SearchStrategy


def _same(values: st.SearchStrategy) -> st.SearchStrategy:
    return values.map(lambda value: (value, value))


def _numbers(bits: int) -> st.SearchStrategy:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _moments(step: int, zone: timezone | None) -> st.SearchStrategy:
    def moment(count: int) -> tuple:
        value = (_EPOCH + timedelta(microseconds=count * step)).replace(tzinfo=zone)
        return value, value

    return st.integers(0, _MICROS_MAX // step).map(moment)


def _times(step: int) -> st.SearchStrategy:
    def at(count: int) -> tuple:
        micros = count * step
        value = time(micros // 3_600_000_000, micros // 60_000_000 % 60, micros // 1_000_000 % 60, micros % 1_000_000)
        return value, count

    return st.integers(0, 86_400_000_000 // step - 1).map(at)


PLAIN = (
    Kind("boolean", _same(st.booleans())),
    Kind("int", _same(_numbers(32))),
    Kind("long", _same(_numbers(64))),
    Kind("float", _same(st.floats(width=32, allow_nan=False))),
    Kind("double", _same(st.floats(allow_nan=False))),
    Kind("bytes", _same(st.binary(max_size=40))),
    Kind("string", _same(st.text(max_size=20))),
    Kind({"type": "string", "logicalType": "uuid"}, st.uuids().map(lambda one: (str(one), str(one)))),
    Kind({"type": "int", "logicalType": "date"}, _same(st.dates())),
    Kind({"type": "int", "logicalType": "time-millis"}, _times(1000)),
    Kind({"type": "long", "logicalType": "time-micros"}, _times(1)),
    Kind({"type": "long", "logicalType": "timestamp-millis"}, _moments(1000, UTC)),
    Kind({"type": "long", "logicalType": "timestamp-micros"}, _moments(1, UTC)),
    Kind({"type": "long", "logicalType": "local-timestamp-millis"}, _moments(1000, None)),
    Kind({"type": "long", "logicalType": "local-timestamp-micros"}, _moments(1, None)),
)


@st.composite
def _named(draw: st.DrawFn, names: itertools.count) -> Kind:
    name = f"t{next(names)}"
    choice = draw(st.sampled_from(("fixed", "enum", "decimal_bytes", "decimal_fixed")))
    if choice == "fixed":
        size = draw(st.integers(1, 20))
        return Kind({"type": "fixed", "name": name, "size": size}, _same(st.binary(min_size=size, max_size=size)))
    if choice == "enum":
        symbols = draw(st.lists(st.sampled_from(string.ascii_uppercase), min_size=1, unique=True))
        return Kind({"type": "enum", "name": name, "symbols": symbols}, _same(st.sampled_from(symbols)))
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    values = _same(st.integers(-most, most).map(lambda number: Decimal(number).scaleb(-scale, _EXACT)))
    logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
    if choice == "decimal_bytes":
        return Kind({"type": "bytes", **logical}, values)
    size = draw(st.integers(most.bit_length() // 8 + 1, 20))
    return Kind({"type": "fixed", "name": name, "size": size, **logical}, values)


@st.composite
def kinds(draw: st.DrawFn, names: itertools.count, depth: int = 3) -> Kind:
    """Any type that may stand in a field, unions with null in either order included."""
    choices = ("plain", "plain", "named", "nullable", "array", "map", "record", "union")
    choice = draw(st.sampled_from(choices if depth else choices[:3]))
    if choice == "plain":
        return draw(st.sampled_from(PLAIN))
    if choice == "named":
        return draw(_named(names))
    if choice == "record":
        return draw(records(names, depth - 1))
    if choice == "union":
        return draw(_unions(names))
    inner = draw(kinds(names, depth - 1))
    if choice == "array":
        items = st.lists(inner.values, max_size=4)
        return Kind({"type": "array", "items": inner.schema}, items.map(lambda pairs: _unzip(pairs, list)))
    if choice == "map":
        entries = st.dictionaries(st.text(max_size=5), inner.values, max_size=3)
        return Kind({"type": "map", "values": inner.schema}, entries.map(_unzip_map))
    if isinstance(inner.schema, list):
        return inner
    order = ["null", inner.schema] if draw(st.booleans()) else [inner.schema, "null"]
    return Kind(order, st.one_of(st.just((None, None)), inner.values))


@st.composite
def _unions(draw: st.DrawFn, names: itertools.count) -> Kind:
    """A union of several types whose values fastavro can tell apart."""
    record = draw(records(names, 0))
    branches = [
        ("string", _same(st.text(max_size=5))),
        ("long", _same(_numbers(64))),
        ("bytes", _same(st.binary(max_size=5))),
        (record.schema, record.values),
    ]
    with_null = draw(st.sampled_from((None, 0, 2)))
    values: list[st.SearchStrategy] = [pairs.map(_as_member(index)) for index, (_, pairs) in enumerate(branches)]
    schema = [one for one, _ in branches]
    if with_null is not None:
        schema.insert(with_null, "null")
        values.append(st.just((None, None)))
    return Kind(schema, st.one_of(values))


@st.composite
def records(draw: st.DrawFn, names: itertools.count, depth: int = 3) -> Kind:
    """A record of a few fields."""
    members = draw(st.lists(kinds(names, depth), min_size=1, max_size=5))
    fields = [{"name": f"f{index}", "type": member.schema} for index, member in enumerate(members)]

    def both(pairs: tuple) -> tuple:
        return tuple({f"f{index}": pair[side] for index, pair in enumerate(pairs)} for side in (0, 1))

    name = f"t{next(names)}"
    schema = {"type": "record", "name": name, "fields": fields}
    return Kind(schema, st.tuples(*(member.values for member in members)).map(both))


def _as_member(index: int) -> Callable[[tuple], tuple]:
    """Turn Arrow's value into a struct of four members of which it is one."""
    return lambda pair: (pair[0], {f"member{at}": pair[1] if at == index else None for at in range(4)})


def _unzip(pairs: list, make: type) -> tuple:
    return make(pair[0] for pair in pairs), make(pair[1] for pair in pairs)


def _unzip_map(pairs: dict) -> tuple:
    return {key: pair[0] for key, pair in pairs.items()}, [(key, pair[1]) for key, pair in pairs.items()]


@st.composite
def schemas_with_rows(draw: st.DrawFn, depth: int = 3) -> tuple[str, list[dict], list[dict]]:
    """A schema text, rows for fastavro, and the same rows as Arrow answers them."""
    record = draw(records(itertools.count(), depth))
    pairs = draw(st.lists(record.values, max_size=6))
    return json.dumps(record.schema), [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def encode_rows(schema: str, rows: list[dict], *, gap: bytes = b"") -> tuple[bytes, np.ndarray, np.ndarray]:
    """Rows as fastavro writes them, with `gap` before each and behind the last."""
    parsed = fastavro.parse_schema(json.loads(schema))
    sink = io.BytesIO()
    starts, ends = [], []
    for row in rows:
        sink.write(gap)
        starts.append(sink.tell())
        fastavro.schemaless_writer(sink, parsed, row)
        ends.append(sink.tell())
    sink.write(gap)
    return sink.getvalue(), np.array(starts, np.int64), np.array(ends, np.int64)


def decode_rows(schema: str, content: bytes, starts: np.ndarray, ends: np.ndarray, wanted: str | None = None) -> list:
    """Rows as fastavro reads them. Each must end where it is said to end."""
    parsed = fastavro.parse_schema(json.loads(schema))
    reading = fastavro.parse_schema(json.loads(wanted)) if wanted else None
    rows = []
    for start, end in zip(starts, ends, strict=True):
        source = io.BytesIO(content[start:end])
        rows.append(fastavro.schemaless_reader(source, parsed, reading))
        assert source.read() == b"", "bytes are left"
    return rows


def as_written(row: object) -> object:
    """A row for fastavro as fastavro reads it back: UUIDs are objects there, texts here."""
    if isinstance(row, dict):
        return {key: as_written(value) for key, value in row.items()}
    if isinstance(row, list):
        return [as_written(value) for value in row]
    return str(row) if isinstance(row, UUID) else row


def column_of(batch: pa.RecordBatch, name: str) -> list:
    return batch.column(batch.schema.get_field_index(name)).to_pylist()
