"""Parameters of a text, `:name` and `?`, replaced by literals: clauses are evaluated apart, each with its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyhudi.errors import Invalid
from pyhudi.sql.words import Cursor, Kind


def with_literals(text: str, args: Mapping[str, Any] | Sequence[Any] | None, literal: Callable[[Any], str]) -> str:
    """The text with a literal for each parameter. `literal`: SQL text of a value.

    Raises: Invalid for a parameter without a value.
    """
    if not args:
        return text
    cursor, pieces, start = Cursor(text), [], 0
    given = iter(args) if not isinstance(args, Mapping) else iter(())
    for at, word in enumerate(cursor.words):
        following = cursor.words[at + 1] if at + 1 < len(cursor.words) else None
        if word.kind is not Kind.SIGN:
            continue
        if word.text == "?" and not isinstance(args, Mapping):
            value = next(given, _NONE)
            if value is _NONE:
                raise Invalid(f"args: expected a value for each '?', found {len(args)}")
            pieces += [text[start : word.start], literal(value)]
            start = word.end
        elif word.text == ":" and isinstance(args, Mapping) and following is not None and following.is_name:
            if following.start != word.end:
                continue
            if following.text not in args:
                raise Invalid(f"args: expected a value for ':{following.text}', found {', '.join(args)}")
            pieces += [text[start : word.start], literal(args[following.text])]
            start = following.end
    return "".join(pieces) + text[start:]


_NONE = object()
