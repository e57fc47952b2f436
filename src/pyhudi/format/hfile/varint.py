"""The two variable-length integers of an HFile, and protobuf messages read by hand."""

from collections.abc import Iterator

from pyhudi.format.hfile.origin import Origin

_VARINT_SIZE_MAX = 10


def encode_varint(value: int) -> bytes:
    """A protobuf varint: 7 bits a byte, low bits first. The high bit of a byte is set if another byte follows."""
    assert 0 <= value < 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes | memoryview, at: int, origin: Origin) -> tuple[int, int]:
    """The value and the offset behind it."""
    value = 0
    for index in range(_VARINT_SIZE_MAX):
        if at + index >= len(data):
            raise origin.corrupt("a whole varint", "the end of the bytes")
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & (1 << 64) - 1, at + index + 1
    raise origin.corrupt(f"a varint of at most {_VARINT_SIZE_MAX} bytes", "a longer one")


def encode_hvint(value: int) -> bytes:
    """A length as Hadoop's WritableUtils writes it: one byte up to 127, else a count and big-endian bytes."""
    assert value >= 0
    if value <= 127:
        return bytes((value,))
    size = (value.bit_length() + 7) // 8
    return bytes((256 - 112 - size,)) + value.to_bytes(size, "big")


def decode_hvint(data: bytes | memoryview, at: int, origin: Origin) -> tuple[int, int]:
    """The value, which may be negative, and the offset behind it."""
    if at >= len(data):
        raise origin.corrupt("a whole length", "the end of the bytes")
    first = data[at] - 256 if data[at] > 127 else data[at]
    if first >= -112:
        return first, at + 1

    is_negative = first < -120
    size = -(first + 120) if is_negative else -(first + 112)
    if at + 1 + size > len(data):
        raise origin.corrupt("a whole length", "the end of the bytes")
    value = int.from_bytes(data[at + 1 : at + 1 + size], "big")
    return (~value if is_negative else value), at + 1 + size


def decode_message(data: bytes | memoryview, origin: Origin) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message, in order: the number, and a varint's value, or the bytes of another field."""
    at = 0
    while at < len(data):
        tag, at = decode_varint(data, at, origin)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = decode_varint(data, at, origin)
            yield number, value
            continue

        if wire_type == 2:
            size, at = decode_varint(data, at, origin)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise origin.corrupt("a protobuf wire type of 0, 1, 2 or 5", str(wire_type))

        if size > len(data) - at:
            raise origin.corrupt(f"{size:,} bytes of protobuf field {number}", f"{len(data) - at:,}")
        yield number, bytes(data[at : at + size])
        at += size


def encode_bytes_field(number: int, value: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(value)) + value


def encode_varint_field(number: int, value: int) -> bytes:
    return encode_varint(number << 3) + encode_varint(value)
