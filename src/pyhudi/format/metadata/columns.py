"""Records of the metadata table as Arrow columns: the decoding that all types of records share.

A record of the metadata table has a field for every type of record, and fills one of these fields. A slice of thousands
of records is read at once, field by field, under the schema that the records were written with. The fields of other
types must be null.

Cost: 5 to 10 ns a field. Memory: the columns, and a slice's fields.
Spec: format/metadata-table.md section 6.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.arrow_arrays import key_buffers
from pyhudi.format.avro.copying import copy_spans, sum_sizes
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.avro.types import NULL, Array, AvroType, Map, Record, Scalar, Union, parse_schema
from pyhudi.format.metadata import reading

Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int64]

SLICE_ROWS_MAX: Final = 1 << 14
SLICE_SIZE_MAX: Final = 1 << 30

WRAPPERS: Final = (
    "null", "BooleanWrapper", "IntWrapper", "LongWrapper", "FloatWrapper", "DoubleWrapper", "BytesWrapper",
    "StringWrapper", "DateWrapper", "DecimalWrapper", "TimeMicrosWrapper", "TimestampMicrosWrapper",
    "LocalDateWrapper", "ArrayWrapper",
)  # fmt: skip
"""The wrappers of bounds. A bound's kind is an index into this tuple. Branches of a union have the same numbers, as far
as the schema has the wrappers."""

_LAYOUTS: Final = {
    "boolean": reading.AS_BOOLEAN,
    "int": reading.AS_INT,
    "long": reading.AS_NUMBER,
    "float": reading.AS_4_BYTES,
    "double": reading.AS_8_BYTES,
    "bytes": reading.AS_BYTES,
    "string": reading.AS_BYTES,
}


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Wrapped values. `kinds`: indexes into `WRAPPERS`; `bits`: numbers, as 64 bits; `data`: texts and bytes."""

    kinds: npt.NDArray[np.int8]
    bits: Numbers
    data: pa.BinaryArray


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The files that records list: the first record's files, then the second's, ... `counts`: files of each record."""

    counts: Numbers
    names: pa.StringArray
    sizes: Numbers
    is_deleted: Bytes


Column: TypeAlias = pa.Array | Bounds | Entries


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Where the field for one type of record stands in a schema of metadata records.

    `before`, `after`: the other fields. `section`: what the field holds: a record, or a map for the type of files.
    """

    before: tuple[tuple[str, AvroType], ...]
    section: AvroType
    after: tuple[tuple[str, AvroType], ...]


@lru_cache(maxsize=64)
def record_shape(schema_text: str, name: str) -> RecordShape:
    """The shape of the records that fill the field `name`, under a schema.

    Raises: Unsupported for a schema without this field, or with another form of it or of what it holds; Invalid for
    text that is no schema.
    """
    fields = [(one.name, one.type) for one in parse_schema(schema_text).fields]
    index = next((index for index, (one, _) in enumerate(fields) if one == name), None)
    if index is None:
        raise Unsupported(f"metadata table: its schema has no field '{name}'; there are {_names(fields)}")
    kind = fields[index][1]
    if not isinstance(kind, Union) or len(kind.values) != 1 or kind.null_branch != 0:
        raise Unsupported(f"metadata table: expected the field '{name}' to be null or one type, found {kind!r:.80}")

    known = _known_kinds()
    for path, found in _kinds(kind, name).items():
        if known.get(path, found) != found:
            raise Unsupported(f"metadata table: expected the field '{path}' to be {known[path]}, found {found}")
    return RecordShape(tuple(fields[:index]), kind.values[0], tuple(fields[index + 1 :]))


@cache
def _known_kinds() -> Mapping[str, str]:
    """As `_kinds`, of all fields of the newest schema. Seen: none differs from 0.13.1 to 1.2.0."""
    fields = parse_schema(metadata_record_schema(9)).fields
    return {path: kind for one in fields for path, kind in _kinds(one.type, one.name).items()}


def _kinds(kind: AvroType, path: str) -> dict[str, str]:
    """The kinds of the values within a type, by path. Optional values have the path of required ones."""
    inner: list[tuple[str, AvroType]] = []
    match kind:
        case Scalar():
            return {path: kind.kind} if kind != NULL else {}
        case Record():
            inner = [(f"{path}.{one.name}", one.type) for one in kind.fields]
        case Union():
            is_one = len(kind.values) == 1
            inner = [(path if is_one else f"{path}.{getattr(one, 'name', '')}", one) for one in kind.values]
        case Array():
            inner = [(f"{path}.element", kind.items)]
        case Map():
            inner = [(f"{path}.value", kind.values)]
    return {where: found for at, one in inner for where, found in _kinds(one, at).items()}


def wrapper_tables(kind: Union) -> tuple[npt.NDArray[np.int8], Bytes, Bytes]:
    """The kind and the layout of each branch of a union of wrappers, and the layouts of a list's items.

    Raises: Unsupported for a type that is no known wrapper.
    """
    kinds, layouts = np.zeros(len(kind.branches), np.int8), np.zeros(len(kind.branches), np.uint8)
    items = np.zeros(0, np.uint8)
    for branch, one in enumerate(kind.branches):
        if one == NULL:
            continue

        name = one.name.rpartition(".")[2] if isinstance(one, Record) else ""
        if not isinstance(one, Record) or name not in WRAPPERS or len(one.fields) != 1:
            raise Unsupported(f"metadata table: expected a known wrapper of values, found {one!r:.80}")

        kinds[branch] = WRAPPERS.index(name)
        held = one.fields[0].type
        if isinstance(held, Scalar) and held.kind in _LAYOUTS:
            layouts[branch] = _LAYOUTS[held.kind]
        elif isinstance(held, Union) and isinstance(held.values[0], Array) and isinstance(held.values[0].items, Union):
            layouts[branch] = reading.AS_ARRAY
            items = wrapper_tables(held.values[0].items)[1]
        else:
            raise Unsupported(f"metadata table: expected a known wrapper of values, found {one!r:.80}")

    return kinds, layouts, items


def is_wrapped(kind: AvroType) -> bool:
    return isinstance(kind, Union) and len(kind.values) > 1


def value_slices(values: pa.Array | pa.ChunkedArray, path: str) -> Iterator[tuple[Bytes, Numbers, Numbers]]:
    """Binary values in slices: the content of a slice, and where each value starts and ends. Raises: Invalid for a null
    or another type.
    """
    for data, offsets, count in key_buffers(values, what=path):
        start = 0
        bounds = np.asarray(offsets, np.int64)
        while start < count:
            last = int(np.searchsorted(bounds, bounds[start] + SLICE_SIZE_MAX, "right")) - 1
            end = min(max(start + 1, last), start + SLICE_ROWS_MAX, count)

            base = bounds[start]
            content = data[base : bounds[end]]
            if content.size > 1 << 31:
                raise Invalid(f"{path}: expected records of less than 2 GiB, found {content.size:,} bytes")

            yield content, bounds[start:end] - base, bounds[start + 1 : end + 1] - base
            start = end


@dataclass(slots=True, eq=False)
class RecordReader:
    """Reads the records of a slice together, field by field. `at`: the offset that each record is read to so far.

    Raises: CorruptFile for bytes that break the schema, naming field and record.
    """

    content: Bytes
    ends: Numbers
    path: str
    at: Numbers
    every: Bytes = field(init=False)

    def __post_init__(self) -> None:
        self.content.setflags(write=False)
        self.every = np.ones(len(self.at), np.uint8)

    def records(self, shape: RecordShape) -> tuple[dict[str, Column], Bytes]:
        """The fields of one type by name, each a column; and flags of the records that have these fields."""
        columns: dict[str, Column] = {}
        for name, kind in shape.before:
            if isinstance(kind, Scalar):
                self._value(name, kind, self.every)
            else:
                self._pass(name, kind)

        is_present = self._optional("record", Union((NULL, shape.section)), self.every)
        if isinstance(shape.section, Map):
            columns["entries"] = self._entries(is_present)
        else:
            assert isinstance(shape.section, Record)
            columns |= self._fields(shape.section, is_present)

        for name, kind in shape.after:
            self._pass(name, kind)

        left = np.flatnonzero(self.at != self.ends)
        if left.size:
            raise self._corrupt("the end of the record", int(left[0]))
        return columns, is_present

    def _pass(self, name: str, kind: AvroType) -> None:
        """Pass over a field that is not wanted: a meta field, or the field of another type, which must be null."""
        is_present = self._optional(name, kind, self.every)
        assert isinstance(kind, Union)
        if isinstance(kind.values[0], Scalar):
            self._value(name, kind.values[0], is_present)
        elif is_present.any():
            raise self._corrupt(f"null, in a record of another type ('{name}')", int(np.flatnonzero(is_present)[0]))

    def _fields(self, record: Record, active: Bytes) -> dict[str, Column]:
        columns: dict[str, Column] = {}
        for one in record.fields:
            if is_wrapped(one.type):
                columns[one.name] = self._wrapped(one.name, one.type, active)
                continue
            held, inner = one.type, active
            if isinstance(held, Union):
                inner, held = self._optional(one.name, held, active), held.values[0]
            if isinstance(held, Record):
                columns |= self._fields(held, inner)
            else:
                columns[one.name] = self._value(one.name, held, inner)
        return columns

    def _optional(self, name: str, kind: AvroType, active: Bytes) -> Bytes:
        if not isinstance(kind, Union) or len(kind.branches) != 2 or kind.null_branch < 0:
            raise Unsupported(f"metadata table: expected the field '{name}' to be null or one type, found {kind!r:.80}")
        is_present = np.zeros(len(self.at), np.uint8)
        self._check(reading.take_optional(self.content, self.at, self.ends, active, kind.null_branch, is_present), name)
        return is_present

    def _value(self, name: str, kind: AvroType, active: Bytes) -> pa.Array:
        count = len(self.at)
        kind_name = kind.kind if isinstance(kind, Scalar) else ""

        if kind_name in ("int", "long"):
            numbers = np.zeros(count, np.int64)
            is_int = kind_name == "int"
            self._check(reading.take_numbers(self.content, self.at, self.ends, active, is_int, numbers), name)
            return pa.Array.from_buffers(pa.int64(), count, [_bitmap(active), pa.py_buffer(numbers)])

        if kind_name == "boolean":
            flags = np.zeros(count, np.uint8)
            self._check(reading.take_flags(self.content, self.at, self.ends, active, flags), name)
            return pa.Array.from_buffers(pa.bool_(), count, [_bitmap(active), _bits(flags)])

        if kind_name in ("string", "bytes"):
            spans = np.zeros(count, np.int64)
            self._check(reading.take_spans(self.content, self.at, self.ends, active, spans), name)
            return self._texts(name, spans, pa.string() if kind_name == "string" else pa.binary(), active)

        raise Unsupported(f"metadata table: field '{name}' of type {kind!r:.80}")

    def _wrapped(self, name: str, kind: AvroType, active: Bytes) -> Bounds:
        assert isinstance(kind, Union)
        kinds, layouts, items = wrapper_tables(kind)
        branches, bits, spans = (np.zeros(len(self.at), np.int64) for _ in range(3))
        self._check(
            reading.take_wrapped(self.content, self.at, self.ends, active, layouts, items, branches, bits, spans),
            name,
        )
        return Bounds(kinds[branches], bits, self._texts(name, spans, pa.binary(), None))

    def _entries(self, active: Bytes) -> Entries:
        counts = np.zeros(len(self.at), np.int64)
        self._check(reading.count_entries(self.content, self.at, self.ends, active, counts), "filesystemMetadata")
        count = int(counts.sum())
        names, sizes, flags = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.uint8)
        reading.take_entries(self.content, self.at, self.ends, active, names, sizes, flags)
        return Entries(counts, self._texts("filesystemMetadata", names, pa.string(), None), sizes, flags)

    def _texts(self, name: str, spans: Numbers, kind: pa.DataType, active: Bytes | None) -> pa.Array:
        offsets = np.empty(len(spans) + 1, np.int32)
        data = np.empty(sum_sizes(spans, offsets), np.uint8)
        bits = copy_spans(self.content, spans, data)
        buffers = [None if active is None else _bitmap(active), pa.py_buffer(offsets), pa.py_buffer(data)]
        texts = pa.Array.from_buffers(kind, len(spans), buffers)
        if bits >= 0x80 and pa.types.is_string(kind):
            try:
                texts.validate(full=True)
            except pa.ArrowInvalid as error:
                raise CorruptFile(self.path, 0, expected=f"UTF-8 text in '{name}'", found=str(error)[:100]) from None
        return texts

    def _check(self, wrong: int, name: str) -> None:
        if wrong >= 0:
            raise self._corrupt(f"a value of '{name}'", wrong)

    def _corrupt(self, expected: str, row: int) -> CorruptFile:
        at = int(self.at[row])
        found = self.content[at : min(at + 10, int(self.ends[row]))].tobytes().hex(" ")
        found = f"{found or 'no bytes'}, with {int(self.ends[row]) - at:,} bytes left"
        return CorruptFile(
            self.path, at, expected=f"{expected} in record {row:,} of a HoodieMetadataRecord", found=found
        )


def read_records(
    values: pa.Array | pa.ChunkedArray, schema_text: str, name: str, *, path: str
) -> Iterator[tuple[Mapping[str, Column], Bytes]]:
    """The records that fill the field `name`, in slices: their fields as columns, and flags of those with a value."""
    shape = record_shape(schema_text, name)
    for content, starts, ends in value_slices(values, path):
        yield RecordReader(content, ends, path, starts.copy()).records(shape)


def _bitmap(flags: Bytes) -> pa.Buffer | None:
    return None if flags.all() else _bits(flags)


def _bits(flags: Bytes) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _names(fields: list[tuple[str, AvroType]]) -> str:
    return ", ".join(name for name, _ in fields)
