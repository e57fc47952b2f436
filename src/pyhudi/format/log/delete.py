"""The content of delete blocks: the deletes as columns.

The columns are `DELETES`: the record key; the partition path, empty in a table without partitions; `ordering_kind`, the
wrapper that stores the ordering value; and `ordering`, the value in that wrapper.
"""

import json
import struct
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.by_content import ByContent
from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.arrow_arrays import list_offsets, null_mask
from pyhudi.format.avro.decode import row_decoder
from pyhudi.format.avro.encode import row_encoder
from pyhudi.format.log.block import BlockType, LogBlock
from pyhudi.format.log.kryo import decode_kryo_deletes
from pyhudi.format.log.kryo_writing import encode_kryo_deletes
from pyhudi.format.log.ordering import INNER, ORDERING, OrderingKind, kinds_of, wrap_ordering
from pyhudi.versions import LogContent

CONTENT_VERSION: Final = LogContent.AVRO.value
_KRYO_VERSIONS: Final = (1, LogContent.JAVA.value)

_HEAD = struct.Struct(">ii")
_NAMESPACE: Final = "org.apache.hudi.avro.model"
_LIST: Final = "deleteRecordList"

DELETES: Final = pa.schema(
    [
        pa.field("record_key", pa.string()),
        pa.field("partition_path", pa.string()),
        pa.field("ordering_kind", pa.int8(), False),
        pa.field("ordering", ORDERING, False),
    ]
)
_NO_DELETES = b"\0"
"""An Avro array without items. The first block of a file group in the metadata table is a delete block with this."""


def read_deletes(block: LogBlock) -> pa.RecordBatch:
    """The deletes of a delete block, as `DELETES`, in file order.

    Memory: the block's content and the columns. Raises: CorruptFile; Unsupported for ordering values of a class that
    only Kryo knows.
    """
    assert block.type is BlockType.DELETE
    return decode_delete_content(block.read_content(), path=block.path, offset=block.content_offset)


def decode_delete_content(content: bytes | memoryview, *, path: str, offset: int = 0) -> pa.RecordBatch:
    """The deletes in a block's content, of any version. `offset`: where the content starts in the file."""
    data = memoryview(content).cast("B")
    if len(data) > _SMALL_BYTES_MAX:
        return _decode(data, path, offset)
    held = bytes(data)
    return _decoded.get(held, lambda: _decode(memoryview(held), path, offset))


_SMALL_BYTES_MAX: Final = 64 << 10
_decoded: ByContent[bytes, pa.RecordBatch] = ByContent(8 << 20, lambda content, batch: len(content) + batch.nbytes)
"""Small blocks that were decoded before: a log of the metadata table is read by each call that lists files."""


def _decode(data: memoryview, path: str, offset: int) -> pa.RecordBatch:
    if len(data) < _HEAD.size:
        raise CorruptFile(path, offset, expected="a delete block's version and size", found=f"{len(data)} bytes")

    version, size = _HEAD.unpack_from(data)
    if version not in (*_KRYO_VERSIONS, CONTENT_VERSION) or size != len(data) - _HEAD.size:
        expected = f"version 1 to {CONTENT_VERSION} and {len(data) - _HEAD.size:,} bytes"
        raise CorruptFile(path, offset, expected=expected, found=f"version {version} and {size:,} bytes")

    body, at = data[_HEAD.size :], offset + _HEAD.size
    if version == CONTENT_VERSION and body == _NO_DELETES:
        return pa.RecordBatch.from_pylist([], DELETES)
    if version in _KRYO_VERSIONS:
        rows = decode_kryo_deletes(body, path=path, offset=at)
        return _batch(
            rows.field("record_key"), rows.field("partition_path"), rows.field("ordering_kind"), rows.field("ordering")
        )

    short = _without_ordering(body) if len(body) <= _SMALL_BYTES_MAX else None
    return short if short is not None else _decode_rows(body, path, at)


def _decode_rows(body: memoryview, path: str, offset: int) -> pa.RecordBatch:
    starts, ends = np.zeros(1, np.int64), np.full(1, len(body), np.int64)
    batch = row_decoder(_schema_text()).decode(body, starts, ends, path=path, offset=offset)
    records = batch.column(0).flatten()
    kinds, ordering = _from_members(records.field("orderingVal"), ORDERING)
    return _batch(records.field("recordKey"), records.field("partitionPath"), pa.array(kinds), ordering)


def _without_ordering(body: memoryview) -> pa.RecordBatch | None:
    """The deletes of a content in which no ordering value is stored; None for any other content.

    A short way for small blocks: the union of all wrappers takes some milliseconds. Both ways read the same bytes alike
    up to the first ordering value that is not null.
    """
    starts, ends = np.zeros(1, np.int64), np.full(1, len(body), np.int64)
    try:
        batch = row_decoder(_short_schema_text()).decode(body, starts, ends, path="", offset=0)
    except (CorruptFile, Unsupported):
        return None
    records = batch.column(0).flatten()
    if records.field("orderingVal").null_count < len(records):
        return None
    kinds, ordering = pa.array(np.zeros(len(records), np.int8)), pa.nulls(len(records), ORDERING)
    return _batch(records.field("recordKey"), records.field("partitionPath"), kinds, ordering)


def make_deletes(record_keys: pa.Array, partition_paths: pa.Array, ordering: Sequence[pa.Array] = ()) -> pa.RecordBatch:
    """Deletes of these keys, as `DELETES`.

    `ordering`: the ordering columns of the table, in their order. Without columns, or where all are null, a delete wins
    over every earlier record of its key. Raises: Invalid for a value that no wrapper holds.
    """
    kinds, values = wrap_ordering(ordering, len(record_keys))
    return _batch(record_keys, partition_paths, pa.array(kinds), values)


def encode_delete_content(deletes: pa.RecordBatch, form: LogContent = LogContent.AVRO) -> bytes:
    """The content of a delete block, from columns as in `DELETES`.

    Layout (big endian): i32 form; i32 size of the rest; for the form 3 an Avro array of records of record key,
    partition path and ordering value: the count and the records, if there are any, then 0; for 2 see `kryo.py`.

    Spec: format/log-format.md section 2.4. Raises: Invalid for an ordering value its wrapper cannot hold; Unsupported
    for one that the form 2 does not hold here.
    """
    if deletes.schema != DELETES:
        raise Invalid(f"delete records: expected the columns {DELETES}, found {deletes.schema}")
    if form is LogContent.JAVA:
        content = encode_kryo_deletes(deletes)
        return _HEAD.pack(form.value, len(content)) + content

    kinds = deletes.column(2).to_numpy(zero_copy_only=False)
    has_ordering = kinds.any() or deletes.column(3).null_count < len(deletes)
    schema_text = _schema_text() if has_ordering else _short_schema_text()
    fields = _delete_fields(schema_text)
    if has_ordering:
        ordering = _to_members(deletes.column(3), ORDERING, kinds, fields[2].type)
    else:
        ordering = pa.nulls(len(deletes), fields[2].type)

    records = pa.StructArray.from_arrays([deletes.column(0), deletes.column(1), ordering], fields=fields)
    offsets = pa.array([0, len(records)], pa.int32())
    row = pa.ListArray.from_arrays(offsets, records, type=pa.list_(pa.field("element", records.type, False)))

    data = row_encoder(schema_text).encode(pa.RecordBatch.from_arrays([row], [_LIST])).content
    return _HEAD.pack(CONTENT_VERSION, data.size) + data.tobytes()


def _batch(keys: pa.Array, partitions: pa.Array, kinds: pa.Array, ordering: pa.StructArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([keys, partitions, kinds, ordering], schema=DELETES)


# The union of wrappers. `ORDERING` has a member for each wrapper: its value. Avro's columns have a record of one field
# instead of it, `value`.


def _from_members(union: pa.StructArray, kind: pa.StructType) -> tuple[np.ndarray, pa.StructArray]:
    members = union.flatten()
    values = []
    for member, field in zip(members, kind, strict=True):
        value = member.flatten()[0]
        if pa.types.is_list(field.type):
            _, inner = _from_members(value.values, INNER)
            value = pa.ListArray.from_arrays(list_offsets(value), inner, type=field.type, mask=null_mask(value))
        values.append(value)

    return kinds_of(members, len(union)), pa.StructArray.from_arrays(values, fields=list(kind))


def _to_members(
    ordering: pa.StructArray, kind: pa.StructType, kinds: np.ndarray, union: pa.StructType
) -> pa.StructArray:
    members = []
    for index, (value, field, wrapper) in enumerate(zip(ordering.flatten(), kind, union, strict=True)):
        is_other = kinds != index + 1
        if (value.is_valid().to_numpy(zero_copy_only=False) & is_other).any():
            raise Invalid(f"delete records: expected '{field.name}' only where the ordering value is of that kind")

        if pa.types.is_list(field.type):
            value = _to_lists(value, wrapper.type.field(0).type)
        mask = pa.array(is_other) if is_other.any() else None
        members.append(pa.StructArray.from_arrays([value], fields=list(wrapper.type), mask=mask))

    return pa.StructArray.from_arrays(members, fields=list(union), mask=pa.array(kinds == 0))


def _to_lists(lists: pa.ListArray, kind: pa.ListType) -> pa.ListArray:
    values = lists.values
    inner_kinds = kinds_of(values.flatten(), len(values))
    inner = _to_members(values, INNER, inner_kinds, kind.value_type)
    return pa.ListArray.from_arrays(list_offsets(lists), inner, type=kind, mask=null_mask(lists))


@cache
def _delete_fields(schema_text: str) -> list[pa.Field]:
    return list(row_decoder(schema_text).schema.field(0).type.value_type)


@cache
def _schema_text() -> str:
    """The Avro schema of `HoodieDeleteRecordList`, with the logical types that its fields have in Java."""
    made: set[str] = set()

    def wrapper(kind: OrderingKind, value_type: object) -> object:
        name = "".join(part.title() for part in kind.name.split("_")) + "Wrapper"
        if name in made:
            return name
        made.add(name)
        return {"type": "record", "name": name, "fields": [{"name": "value", "type": value_type}]}

    scalars: list[tuple[OrderingKind, object]] = [
        (OrderingKind.BOOLEAN, "boolean"),
        (OrderingKind.INT, "int"),
        (OrderingKind.LONG, "long"),
        (OrderingKind.FLOAT, "float"),
        (OrderingKind.DOUBLE, "double"),
        (OrderingKind.BYTES, "bytes"),
        (OrderingKind.STRING, "string"),
        (OrderingKind.DATE, {"type": "int", "logicalType": "date"}),
        (OrderingKind.DECIMAL, {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}),
        (OrderingKind.TIME_MICROS, "long"),
        (OrderingKind.TIMESTAMP_MICROS, {"type": "long", "logicalType": "timestamp-micros"}),
    ]

    outer = ["null", *(wrapper(*one) for one in scalars)]
    local_date = (OrderingKind.LOCAL_DATE, {"type": "int", "logicalType": "date"})
    inner = ["null", *(wrapper(*one) for one in (*scalars, local_date))]
    items = {"type": "array", "items": inner}
    array = {"type": "record", "name": "ArrayWrapper", "fields": [{"name": "wrappedValues", "type": ["null", items]}]}

    return _list_schema([*outer, array])


@cache
def _short_schema_text() -> str:
    """A schema that encodes deletes without ordering values as `_schema_text` does: null is the first branch."""
    return _list_schema(["null", "int"])


def _list_schema(ordering: list[object]) -> str:
    fields = [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ordering},
    ]
    records = {"type": "array", "items": {"type": "record", "name": "HoodieDeleteRecord", "fields": fields}}
    whole = {"type": "record", "name": "HoodieDeleteRecordList", "namespace": _NAMESPACE}
    return json.dumps({**whole, "fields": [{"name": _LIST, "type": records}]})


@cache
def no_deletes() -> pa.RecordBatch:
    """The content of the delete block that opens a file group of the metadata table: no deletes."""
    empty = pa.array([], pa.string())
    return make_deletes(empty, empty)
