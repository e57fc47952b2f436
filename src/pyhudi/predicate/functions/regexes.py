"""`regexp_extract` and `regexp_replace`, for patterns where RE2 and Java find the same text of each match and group.

Other patterns are refused rather than guessed.

Seen: PySpark 4.3.0 (`tests/spark/test_predicate_like_spark.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.nodes import Call, Literal, Node
from pyhudi.predicate.patterns import PatternError, translate_at
from pyhudi.predicate.refusals import NotBuilt, SignatureError

ARGUMENT_COUNTS = {"regexp_extract": (2, 3), "regexp_replace": (3, 3)}
_GROUP = "found"
_GROUPS_MAX = 9
"""In RE2, a replacement may refer to at most so many groups."""


@dataclass(frozen=True, slots=True)
class Search:
    """A pattern, cut into parts. `groups`: the numbers of the parts that open a capturing group, in order."""

    parts: tuple[str, ...]
    groups: tuple[int, ...]

    @property
    def pattern(self) -> str:
        return "".join(self.parts)

    def capturing(self, group: int) -> str:
        """The pattern in which only this group captures, under a name. Group 0 is the whole pattern."""
        if group == 0:
            return f"(?P<{_GROUP}>{''.join(self._without_groups())})"
        parts = self._without_groups()
        parts[self.groups[group - 1]] = f"(?P<{_GROUP}>"
        return "".join(parts)

    def _without_groups(self) -> list[str]:
        return ["(?:" if at in self.groups else part for at, part in enumerate(self.parts)]


@lru_cache(maxsize=64)
def parse_search(text: str) -> Search:
    """A Java regular expression as RE2 that finds the same texts.

    Raises: PatternError for what RE2 lacks or reads differently. That is all that `parse_java_regex` refuses, and `$`,
    which finds other texts in RE2, and a repeated group that captures, which keeps another repetition in RE2.
    """
    parts: list[str] = []
    groups: list[int] = []
    open_groups: list[bool] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "$":
            raise PatternError("'$' where text is searched for")

        part, following = translate_at(text, position)
        if char in "*+?{" and following - position > len(part):
            part += "?"  # lazy
        elif part == "(":
            groups.append(len(parts))

        if char == "(":
            open_groups.append(part == "(")
        elif char == ")":
            captures = bool(open_groups) and open_groups.pop()
            if captures and text[following : following + 1] in ("*", "+", "{"):
                raise PatternError("a repeated group that captures")
            if open_groups:
                open_groups[-1] |= captures

        parts.append(part)
        position = following
    return Search(tuple(parts), tuple(groups))


def parse_replacement(text: str, group_count: int) -> str:
    """A Java replacement in RE2's spelling. `$1` is a group's text; a backslash makes the next character literal.

    Raises: SignatureError for what Java refuses; PatternError for named groups and for a group beyond the ninth.
    """
    parts: list[str] = []
    position = 0
    while position < len(text):
        char, following = text[position], text[position + 1 : position + 2]
        if char == "\\":
            if not following:
                raise SignatureError(f"the replacement {text!r} ends in a backslash")
            parts.append(_literally(following))
            position += 2
        elif char == "$":
            group, position = _group_at(text, position + 1, group_count)
            parts.append(f"\\{group}")
        else:
            parts.append(char)
            position += 1
    return "".join(parts)


def _group_at(text: str, position: int, group_count: int) -> tuple[int, int]:
    """The group number at `position`, and where the text goes on. Takes as many digits as make an existing group.

    Example: with 3 groups, `12` means group 1, followed by the digit 2.
    """
    first = text[position : position + 1]
    if first == "{":
        raise PatternError("a group by its name")
    if first not in tuple("0123456789"):
        raise SignatureError(f"the replacement {text!r} has '$' before no number of a group")
    group, position = int(first), position + 1
    while text[position : position + 1] in tuple("0123456789") and int(f"{group}{text[position]}") <= group_count:
        group, position = int(f"{group}{text[position]}"), position + 1

    if group > group_count:
        raise SignatureError(f"the replacement {text!r} names the group {group}, of {group_count}")
    if group > _GROUPS_MAX:
        raise PatternError(f"the group {group}")
    return group, position


def _literally(char: str) -> str:
    return "\\\\" if char == "\\" else char


def regex_call(name: str, arguments: tuple[Node, ...], cast_to: Callable[[Node, pa.DataType], Node]) -> Call:
    """The call, checked. Raises: SignatureError for what Spark refuses too; NotBuilt for what only we refuse."""
    if name == "regexp_extract" and len(arguments) == 2:
        arguments = (*arguments, Literal(pa.scalar(1, pa.int32()), pa.int32()))
    kinds = (pa.string(), pa.string(), pa.int32() if name == "regexp_extract" else pa.string())
    text, *rest = (cast_to(argument, kind) for argument, kind in zip(arguments, kinds, strict=True))
    if not all(isinstance(one, Literal) and one.value.is_valid for one in rest):
        raise NotBuilt(f"{name} by anything but literals")
    call = Call(name, (text, *rest), pa.string())
    try:
        run_regex_call(call, pa.array([""], pa.string()))
    except (PatternError, pa.ArrowInvalid) as error:
        raise NotBuilt(f"{name} by this pattern: {error}; that") from error
    return call


def run_regex_call(call: Call, text: pa.Array) -> pa.Array:
    """The call's texts. Shape: (n,) -> (n,). `regexp_extract` gives an empty text if there is no match."""
    pattern, last = (_value(argument) for argument in call.arguments[1:])
    search = parse_search(str(pattern))
    if call.name == "regexp_extract":
        return _extract(search, text, int(last))
    if pc.match_substring_regex(pa.array([""]), search.pattern)[0].as_py():
        raise PatternError("it matches an empty text, which Java replaces at other places")
    return pc.replace_substring_regex(text, search.pattern, parse_replacement(str(last), len(search.groups)))


def _extract(search: Search, text: pa.Array, group: int) -> pa.Array:
    if not 0 <= group <= len(search.groups):
        raise SignatureError(f"regexp_extract of the group {group}: the pattern has {len(search.groups)}")
    found = pc.struct_field(pc.extract_regex(text, search.capturing(group)), _GROUP)
    return pc.if_else(text.is_valid(), pc.fill_null(found, ""), pa.scalar(None, pa.string()))


def _value(node: Node) -> str | int:
    assert isinstance(node, Literal)
    value = node.value.as_py()
    assert isinstance(value, str | int)
    return value
