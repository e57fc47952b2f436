"""The content of the delete blocks that releases before Hudi 0.14 wrote, with Java's Kryo serializer.

Layout: `DeleteRecord[]` (version 2) or `HoodieKey[]` (version 1) as Kryo 4
writes a class and an object, with references. Spec: format/log-format.md section 2.4.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.log import kryo_loop
from pyhudi.format.log.kryo_reading import (
    AT,
    BAD_CLASS,
    BAD_COUNT,
    BAD_REFERENCE,
    BAD_TEXT,
    BAD_VALUE,
    CUT,
    FINE,
    NAME_COUNT,
    STATE_SIZE,
    TEXT_SIZE,
    TEXTS,
    TOO_WIDE,
    Numbers,
)
from pyhudi.format.log.ordering import DECIMAL, ORDERING, OrderingKind

_NAME_BYTES: Final = np.frombuffer(b"".join(kryo_loop.NAMES), np.uint8)
_NAME_ENDS: Final = np.cumsum([len(name) for name in kryo_loop.NAMES]).astype(np.int64)
_EXPECTED: Final = {
    CUT: "more bytes",
    BAD_CLASS: "a class of delete records, or of ordering values",
    BAD_REFERENCE: "an object or a reference to an earlier one",
    BAD_TEXT: "a string",
    BAD_COUNT: "a count of records that fit into the block",
    BAD_VALUE: "a date or a moment",
}


def decode_kryo_deletes(content: memoryview, *, path: str, offset: int) -> pa.StructArray:
    """Structs of `record_key`, `partition_path`, `ordering_kind` and `ordering`, one a delete.

    `offset`: where the content starts in the file. Raises: CorruptFile; Unsupported for an ordering value of a class
    that is not read here, such as ByteBuffer, or a decimal with more digits than deletes hold.
    """
    data = np.frombuffer(content, np.uint8)
    data.setflags(write=False)
    state = np.zeros(STATE_SIZE, np.int64)
    texts, ends = np.zeros(data.size + 1, np.uint8), np.zeros(data.size + 2, np.int32)
    found = np.zeros((data.size + 1, kryo_loop.WIDTH), np.int64)
    objects = np.full((data.size + 1, 3), -1, np.int64)
    names = np.zeros((kryo_loop.NAMES_MAX, 3), np.int64)

    wrong, count = kryo_loop.run(data, _NAME_BYTES, _NAME_ENDS, state, texts, ends, found, objects, names)

    if wrong == BAD_CLASS:
        start, size = names[max(int(state[NAME_COUNT]) - 1, 0), :2].tolist()
        name = (data[start : start + size] & 0x7F).tobytes().decode("ascii", "replace")
        raise Unsupported(
            f"{path} at byte {offset + int(state[AT]):,}: a delete block in Kryo form with a class that is not read "
            f"(the last one named is '{name}'); compact the table with Hudi first"
        )

    if wrong == TOO_WIDE:
        raise Unsupported(
            f"{path} at byte {offset + int(state[AT]):,}: a delete is ordered by a decimal that {DECIMAL} does not "
            "hold; compact the table with Hudi first"
        )
    if wrong != FINE:
        left = f"{data.size - int(state[AT]):,} bytes to the end"
        raise CorruptFile(path, offset + int(state[AT]), expected=_EXPECTED[wrong], found=left)
    if state[AT] != data.size:
        left = f"{data.size - int(state[AT]):,} bytes more"
        raise CorruptFile(path, offset + int(state[AT]), expected="the end of the delete records", found=left)

    text_count = int(state[TEXTS])
    buffers = [
        None,
        pa.py_buffer(ends[: text_count + 1].copy()),
        pa.py_buffer(texts[: int(state[TEXT_SIZE])].copy()),
    ]
    strings = pa.Array.from_buffers(pa.string(), text_count, buffers)
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFile(path, offset, expected="strings of Java", found=str(error)) from error
    return _as_columns(found[:count], strings)


def _as_columns(found: Numbers, strings: pa.Array) -> pa.StructArray:
    kinds, numbers = found[:, kryo_loop.ORDERING], found[:, kryo_loop.VALUE]

    def member(name: str) -> pa.Array:
        kind = OrderingKind[name.upper()]
        wanted, mask = ORDERING.field(name).type, kinds != kind
        if mask.all():
            return pa.nulls(len(found), wanted)
        match kind:
            case OrderingKind.STRING:
                return strings.take(pa.array(numbers, mask=mask))
            case OrderingKind.FLOAT:
                return pa.array(numbers.astype(np.int32).view(np.float32), mask=mask)
            case OrderingKind.DOUBLE:
                return pa.array(numbers.view(np.float64), mask=mask)
            case OrderingKind.BOOLEAN:
                return pa.array(numbers != 0, mask=mask)
            case OrderingKind.DATE:
                return pa.array(numbers.astype(np.int32), mask=mask).cast(wanted)
            case OrderingKind.DECIMAL:
                halves = np.ascontiguousarray(found[:, [kryo_loop.VALUE, kryo_loop.HIGH]])
                values = pa.Array.from_buffers(DECIMAL, len(found), [None, pa.py_buffer(halves)])
                return pc.if_else(pa.array(~mask), values, None)
            case _:
                return pa.array(numbers, mask=mask).cast(wanted)

    ordering = pa.StructArray.from_arrays([member(field.name) for field in ORDERING], fields=list(ORDERING))
    columns = [
        strings.take(pa.array(found[:, at], mask=found[:, at] < 0))
        for at in (kryo_loop.RECORD_KEY, kryo_loop.PARTITION)
    ]
    names = ["record_key", "partition_path", "ordering_kind", "ordering"]
    return pa.StructArray.from_arrays([*columns, pa.array(kinds.astype(np.int8)), ordering], names)
