"""JSON as Jackson's default pretty printer lays it out: objects by line, lists on one line.

Seen: Apache Hudi 0.13.1 to 1.2.0 write commits of version 6 and the manifests of archived instants so.
"""

import json
import re


def pretty_json(value: object, indent: str = "") -> str:
    """A value of dicts, lists and plain values; `indent`: of the line that it begins on."""
    if isinstance(value, dict):
        inner = indent + "  "
        members = (f"{inner}{_quoted(key)} : {pretty_json(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(members) + f"\n{indent}}}" if value else "{ }"
    if isinstance(value, list):
        return "[ " + ", ".join(pretty_json(item, indent) for item in value) + " ]" if value else "[ ]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """Jackson writes the hexadecimal digits of control characters in upper case, Python in lower."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f])", _upper, json.dumps(text, ensure_ascii=False))


def _upper(match: re.Match[str]) -> str:
    return f"{match[1]}\\u00{match[2].upper()}"
