"""JSON as Jackson's default pretty printer lays it out: each member of an object on its own line, lists on one line.

Seen: Apache Hudi 0.13.1 to 1.2.0 write commits of version 6, and the manifests of archived instants, in this form.
"""

import json
import re
from json.encoder import encode_basestring
from typing import Final

_CONTROL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f])")


def pretty_json(value: object, indent: str = "") -> str:
    """The text of a value made of dicts, lists and plain values. `indent`: the indent of the line it begins on."""
    if isinstance(value, dict):
        inner = indent + "  "
        members = (f"{inner}{_quoted(key)} : {pretty_json(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(members) + f"\n{indent}}}" if value else "{ }"
    if isinstance(value, list):
        return "[ " + ", ".join(pretty_json(item, indent) for item in value) + " ]" if value else "[ ]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """A text in quotes. Jackson writes the hexadecimal digits of control characters in upper case, Python in lower."""
    quoted = encode_basestring(text)
    return _CONTROL.sub(_upper, quoted) if "\\u00" in quoted else quoted


def _upper(match: re.Match[str]) -> str:
    return f"{match[1]}\\u00{match[2].upper()}"
