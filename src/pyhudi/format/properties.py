"""Java properties text, `hoodie.properties` with its checksum, and the partition metadata file."""

import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime

from pyhudi.by_content import ByContent
from pyhudi.errors import CorruptFile, Invalid

CHECKSUM = "hoodie.table.checksum"
_KEY_VALUE = re.compile(r"((?:[^=: \t\f\\]|\\.|\\$)*+)[ \t\f]*+[=:]?[ \t\f]*+(.*)", re.DOTALL)
_UNIT = re.compile("[0-9A-Fa-f]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPES = {value: key for key, value in _ESCAPES.items()}
_decoded: ByContent[bytes, dict[str, str]] = ByContent(1 << 20, lambda content, _: 8 * len(content))
"""The properties of tables. Each call of a table reads them several times."""


def parse_properties(content: bytes) -> dict[str, str]:
    """Keys and values of a Java properties text (ISO-8859-1 with `\\uXXXX` escapes).

    Raises: ValueError for a broken escape.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(content.decode("latin-1")):
        key, value = _split(line)
        properties[_unescape(key)] = _unescape(value)
    return properties


def format_properties(properties: Mapping[str, str], *, comments: tuple[str, ...] = ()) -> bytes:
    """A Java properties text: comment lines, then `key=value` lines in the mapping's order."""
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}" for key, value in properties.items()]
    return ("\n".join(lines) + "\n").encode("latin-1")


def table_checksum(properties: Mapping[str, str]) -> str:
    """The checksum of a table's properties. It covers only the database's and the table's name.

    Spec: format/layout.md section 2.1. Seen: `.t` -> 498511606; `default.v6_empty` -> 1980710965.
    """
    name = f"{properties.get('hoodie.database.name', '')}.{properties.get('hoodie.table.name', '')}"
    return str(zlib.crc32(name.encode()))


_REWRITE = "Put it back from a copy, or write it anew as it was."


def decode_table_properties(content: bytes, *, path: str) -> dict[str, str]:
    """The properties in `hoodie.properties`, checked.

    Raises: CorruptFile if the text does not parse, if the table's name is missing, or if there is a checksum and it is
    wrong. A torn write leads to any of these.
    """
    return dict(_decoded.get(content, lambda: _decode_table_properties(content, path)))


def _decode_table_properties(content: bytes, path: str) -> dict[str, str]:
    try:
        properties = parse_properties(content)
    except ValueError as error:
        raise CorruptFile(
            path, 0, expected="Java properties text", found=f"a broken escape ({error})",
            hint=f"The file is torn. {_REWRITE}",
        ) from error  # fmt: skip

    if not properties.get("hoodie.table.name"):
        raise CorruptFile(
            path, 0, expected="a property 'hoodie.table.name'", found=f"{len(content):,} bytes without it",
            hint=f"The file is torn. {_REWRITE}",
        )  # fmt: skip

    found = properties.get(CHECKSUM)
    if found is not None and found != table_checksum(properties):
        raise CorruptFile(
            path, 0, expected=f"{CHECKSUM}={table_checksum(properties)}", found=f"{CHECKSUM}={found}",
            hint=f"The file is torn or was edited by hand. {_REWRITE}",
        )  # fmt: skip

    return properties


def encode_table_properties(properties: Mapping[str, str], *, epoch_ms: int, is_update: bool) -> bytes:
    """`hoodie.properties` with its checksum and the two comment lines that Apache Hudi writes.

    Raises: Invalid for a text that no file holds: one with half a surrogate pair.
    """
    for name, text in properties.items():
        if not (is_utf8(name) and is_utf8(text)):
            raise Invalid(f"property {name!r}: expected text that UTF-8 can spell, found {text!r}")
    moment = datetime.fromtimestamp(epoch_ms / 1000, tz=UTC)
    first = f"{'Updated at' if is_update else 'Properties saved on'} {moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}Z"
    content = {**properties, CHECKSUM: table_checksum(properties)}
    return format_properties(content, comments=(first, java_date(epoch_ms)))


def is_utf8(text: str) -> bool:
    """Whether a text can be stored: one with half a surrogate pair cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def encode_partition_metadata(*, requested: str, partition: str, epoch_ms: int) -> bytes:
    """The content of `.hoodie_partition_metadata`. Spec: format/layout.md section 3."""
    properties = partition_metadata(requested=requested, partition=partition)
    return format_properties(properties, comments=("partition metadata", java_date(epoch_ms)))


def partition_metadata(*, requested: str, partition: str) -> dict[str, str]:
    """What the file of a partition says."""
    depth = len(partition.split("/")) if partition else 0
    return {"commitTime": requested, "partitionDepth": str(depth)}


def java_date(epoch_ms: int) -> str:
    """A moment as `java.util.Date` prints it, in UTC, whatever the process's locale is."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, tz=UTC)
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{day} {months[moment.month - 1]} {moment:%d %H:%M:%S} UTC {moment:%Y}"


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: str | None = None
    for raw in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = raw.lstrip(" \t\f")
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        backslashes = len(line) - len(line.rstrip("\\"))
        pending = line[:-1] if backslashes % 2 else None
        if pending is None:
            lines.append(line)
    return [line for line in (*lines, pending or "") if line]


def _split(line: str) -> tuple[str, str]:
    """A logical line's key and value, still escaped."""
    found = _KEY_VALUE.fullmatch(line)
    assert found is not None
    return found[1], found[2]


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char != "\\" or at + 1 == len(text):
            out.append(char)
            at += 1
        elif text[at + 1] == "u":
            digits = text[at + 2 : at + 6]
            if _UNIT.fullmatch(digits) is None:
                raise ValueError(f"\\u{digits}: expected four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2

    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16")


def _escape(text: str, *, is_key: bool) -> str:
    out: list[str] = []
    for at, char in enumerate(text):
        if char in _UNESCAPES:
            out.append("\\" + _UNESCAPES[char])
        elif char in "\\=:#!" or (char == " " and (is_key or at == 0)):
            out.append("\\" + char)
        elif 0x20 <= ord(char) <= 0x7E:
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)
