"""Translates LIKE patterns and Java regular expressions to RE2, which Arrow runs.

Only patterns with the same meaning in both are translated; others are refused rather than guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid

# Java's "." matches none of these characters, and its "$" also matches before one of them at the end.
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_ANY = f"[^{_LINE_ENDS}]"
_END = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_SPACE = r"\t\n\x0b\f\r "
_ESCAPES = {"d": r"[0-9]", "D": r"[^0-9]", "w": r"[0-9A-Za-z_]", "W": r"[^0-9A-Za-z_]"} | {
    "s": f"[{_SPACE}]",
    "S": f"[^{_SPACE}]",
    "t": r"\t",
    "n": r"\n",
    "r": r"\r",
    "f": r"\f",
}
_CLASS_ESCAPES = {"d": "0-9", "w": "0-9A-Za-z_", "s": _SPACE, "t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_COUNT = re.compile(r"\{\d{1,3}(,\d{0,3})?\}")


class PatternError(ValueError):
    """The pattern cannot be translated; the text says which part."""


@dataclass(frozen=True, slots=True)
class LikePattern:
    pattern: str
    prefix: str


def parse_like(text: str, escape: str = "\\") -> LikePattern:
    """A LIKE pattern as RE2, and the literal text that it starts with.

    Raises: PatternError where Spark refuses: an escape character at the end, or before an ordinary character.
    """
    parts: list[str] = []
    prefix: str | None = None
    plain = ""
    position = 0
    while position < len(text):
        char = text[position]
        if char == escape:
            position += 1
            if position == len(text) or text[position] not in ("_", "%", escape):
                raise PatternError(f"the escape {escape!r} must stand before '_', '%' or itself in {text!r}")
            char = text[position]
        elif char in "_%":
            prefix = plain if prefix is None else prefix
            parts.append("." if char == "_" else ".*")
            position += 1
            continue
        plain += char
        parts.append(_quoted(char))
        position += 1

    return LikePattern(rf"(?s)\A{''.join(parts)}\z", plain if prefix is None else prefix)


def _quoted(char: str) -> str:
    return char if char.isalnum() or ord(char) >= 128 else f"\\x{{{ord(char):x}}}"


def checked_java_regex(text: str, *, option: str) -> str:
    """The Java regular expression that an option gives, as it is. Raises: Invalid if RE2 cannot run it as Java does."""
    try:
        pc.match_substring_regex(pa.array([""]), parse_java_regex(text))
    except (PatternError, pa.ArrowInvalid) as error:
        raise Invalid(
            f"option '{option}'='{text}': expected a regular expression that Java and RE2 read alike; {error}"
        ) from error
    return text


def whole_matches(texts: Sequence[str], java_regex: str) -> list[bool]:
    """Whether a Java regular expression matches each text as a whole. RE2 takes time proportional to the texts."""
    whole = rf"\A(?:{parse_java_regex(java_regex)})\z"
    return pc.match_substring_regex(pa.array(texts, pa.string()), whole).to_pylist()


def parse_java_regex(text: str) -> str:
    """A Java regular expression as RE2.

    Raises: PatternError for what RE2 lacks (lookaround, back references, possessive counts) and for what RE2 reads
    differently (flags, word boundaries, nested classes).
    """
    parts: list[str] = []
    position = 0
    while position < len(text):
        part, position = translate_at(text, position)
        parts.append(part)
    return "".join(parts)


def translate_at(text: str, position: int) -> tuple[str, int]:
    """The translation of the part that starts at `position`, and where the next part starts."""
    char = text[position]
    following = text[position + 1 : position + 2]
    if char == "\\":
        return _escape(following, _ESCAPES), position + 2
    if char == "[":
        return _character_class(text, position)
    if char == ".":
        return _ANY, position + 1

    if char == "$":
        if following not in ("", ")", "|"):
            raise PatternError("'$' before the end of an alternative")
        return _END, position + 1

    if char == "(" and following == "?":
        if text[position + 2 : position + 3] != ":":
            raise PatternError(f"the group {text[position : position + 4]!r}")
        return "(?:", position + 3

    if char in "*+?":
        return char, _end_of_count(text, position + 1)
    if char == "{":
        count = _COUNT.match(text, position)
        if count is None:
            raise PatternError("'{' that opens no count")
        return count.group(), _end_of_count(text, count.end())

    if char in "()|^":
        return char, position + 1
    if char == "]" or char == "}":
        return _quoted(char), position + 1
    return _quoted(char), position + 1


def _end_of_count(text: str, position: int) -> int:
    """Skips a lazy mark: it cannot change whether there is a match."""
    following = text[position : position + 1]
    if following == "+":
        raise PatternError("a possessive count")
    return position + 1 if following == "?" else position


def _escape(char: str, known: dict[str, str]) -> str:
    if char in known:
        return known[char]
    if not char or char.isalnum():
        raise PatternError(f"the escape '\\{char}'")
    return _quoted(char)


def _character_class(text: str, position: int) -> tuple[str, int]:
    parts = ["["]
    position += 1
    if text[position : position + 1] == "^":
        parts.append("^")
        position += 1

    first = position
    while position < len(text):
        char = text[position]
        if char == "]" and position > first:
            return "".join(parts) + "]", position + 1
        if char in "[]" or text.startswith("&&", position):
            raise PatternError("a class inside a class")
        if char == "\\":
            parts.append(_escape(text[position + 1 : position + 2], _CLASS_ESCAPES))
            position += 2
            continue
        parts.append("-" if char == "-" else _quoted(char))
        position += 1
    raise PatternError("a class that does not end")
