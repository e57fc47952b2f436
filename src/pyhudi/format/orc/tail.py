"""The messages at the end of an ORC file: where its stripes lie, and what it states of its columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.errors import Unsupported
from pyhudi.format.hfile.origin import Origin
from pyhudi.format.hfile.varint import decode_message, encode_bytes_field, encode_varint_field
from pyhudi.format.orc.compression import Compression, encode_message

_USER_METADATA = 5
_CHUNK_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class Stripe:
    """`footer_start`, `footer_size`: where the stripe's own footer lies. Units: bytes."""

    rows: int
    footer_start: int
    footer_size: int


@dataclass(frozen=True, slots=True)
class OrcTail:
    """`timestamp_bounds_ms`: the least and the greatest of each timestamp column that states them, by the column's
    number in the file's tree of types. Units: milliseconds since 1970.
    """

    compression: Compression
    stripes: tuple[Stripe, ...]
    timestamp_bounds_ms: dict[int, tuple[int, int]]

    @property
    def stripe_rows(self) -> tuple[int, ...]:
        return tuple(stripe.rows for stripe in self.stripes)


def decode_tail(tail: bytes, *, path: str) -> OrcTail:
    """The tail of a file.

    Layout: a `FileTail` message: 1 postscript (2 codec), 2 footer (3 stripes: 1 offset, 2 index bytes, 3 data bytes,
    4 footer bytes, 5 rows; 7 statistics of each column: 9 of timestamps, in zigzag: 1 or 3 least, 2 or 4 greatest).
    Spec: ORC v1, "File Tail". Raises: CorruptFile.
    """
    origin = Origin(path, 0)
    parts = dict(decode_message(tail, origin))
    postscript = dict(decode_message(_bytes(parts.get(1, b"")), origin))

    stripes: list[Stripe] = []
    bounds: dict[int, tuple[int, int]] = {}
    column = 0
    for number, value in decode_message(_bytes(parts.get(2, b"")), origin):
        if number == 3:
            stripes.append(_stripe(_bytes(value), origin))
        elif number == 7:
            if (found := _timestamp_bounds(_bytes(value), origin)) is not None:
                bounds[column] = found
            column += 1
    return OrcTail(Compression.numbered(_number(postscript.get(2, 0)), path=path), tuple(stripes), bounds)


def with_entries(ending: bytes, entries: Mapping[str, str], *, path: str) -> bytes:
    """The end of a file with these entries of user metadata in its footer, in place of those that it has.

    `ending`: at least the footer, the postscript and the last byte.
    Layout: the footer, compressed; the postscript (1 bytes of the footer, 2 codec, 3 bytes of a chunk); its length, a
    byte. An entry is field 5 of the footer: 1 name, 2 value. Spec: ORC v1, "File Tail".
    """
    origin = Origin(path, 0)
    postscript_size = ending[-1]
    postscript = list(decode_message(ending[-1 - postscript_size : -1], origin))
    fields = dict(postscript)
    codec = Compression.numbered(_number(fields.get(2, 0)), path=path)

    footer_start = len(ending) - 1 - postscript_size - _number(fields.get(1, 0))
    assert footer_start >= 0, "the footer is part of the ending"
    footer = codec.decode(ending[footer_start : -1 - postscript_size], path=path)
    kept = b"".join(_encoded(*field) for field in decode_message(footer, origin) if field[0] != _USER_METADATA)
    noted = b"".join(
        encode_bytes_field(_USER_METADATA, encode_bytes_field(1, name.encode()) + encode_bytes_field(2, value.encode()))
        for name, value in entries.items()
    )

    content = encode_message(kept + noted, codec, chunk_bytes=_number(fields.get(3, 0)) or _CHUNK_BYTES)
    told = b"".join(_encoded(*((1, len(content)) if field[0] == 1 else field)) for field in postscript)
    return ending[:footer_start] + content + told + bytes([len(told)])


def decode_writer_zone(stripe_footer: bytes, *, path: str) -> str | None:
    """The time zone in which a stripe's timestamps are clock readings, as the writer named it. None: none is named.

    Layout: a `StripeFooter` message: 3 the writer's time zone. Spec: ORC v1, "Stripe Footer".
    """
    fields = dict(decode_message(stripe_footer, Origin(path, 0)))
    zone = fields.get(3)
    if zone is None:
        return None
    try:
        return _bytes(zone).decode()
    except UnicodeDecodeError as error:
        raise Unsupported(f"{path}: a stripe whose writer's time zone is no text ({error})") from error


def _encoded(number: int, value: int | bytes) -> bytes:
    return encode_bytes_field(number, value) if isinstance(value, bytes) else encode_varint_field(number, value)


def _stripe(message: bytes, origin: Origin) -> Stripe:
    fields = dict(decode_message(message, origin))
    offset, index, data, footer, rows = (_number(fields.get(number, 0)) for number in (1, 2, 3, 4, 5))
    return Stripe(rows, offset + index + data, footer)


def _timestamp_bounds(message: bytes, origin: Origin) -> tuple[int, int] | None:
    for number, value in decode_message(message, origin):
        if number == 9:
            told = dict(decode_message(_bytes(value), origin))
            ends = list(_zigzag(told.get(3, told.get(1)), told.get(4, told.get(2))))
            if len(ends) == 2:
                return ends[0], ends[1]
    return None


def _zigzag(*values: int | bytes | None) -> Iterator[int]:
    for value in values:
        if isinstance(value, int):
            yield (value >> 1) ^ -(value & 1)


def _bytes(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0
