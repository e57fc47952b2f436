"""Parameters of a text, `:name` and `?`, and `IDENTIFIER(…)`, replaced by what they stand for.

Clauses are evaluated apart, each with its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyhudi.errors import Invalid
from pyhudi.sql.words import Cursor, Kind


def with_literals(text: str, args: Mapping[str, str] | Sequence[str]) -> str:
    """The text with a literal for each parameter. `args`: the values as SQL text.

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
            value = next(given, None)
            if value is None:
                raise Invalid(f"args: expected a value for each '?', found {len(args)}")
            pieces += [text[start : word.start], value]
            start = word.end
        elif word.text == ":" and isinstance(args, Mapping) and following is not None and following.is_name:
            if following.start != word.end:
                continue
            if following.text not in args:
                raise Invalid(f"args: expected a value for ':{following.text}', found {', '.join(args)}")
            pieces += [text[start : word.start], args[following.text]]
            start = following.end
    return "".join(pieces) + text[start:]


def has_identifiers(text: str) -> bool:
    """Whether the text gives a name as `IDENTIFIER(expression)`."""
    return any(True for _ in _identifiers(text))


def with_identifiers(text: str, value: Callable[[str], object]) -> str:
    """The text with a name for each `IDENTIFIER(expression)`. `value`: the value of an expression without columns."""
    pieces, start = [], 0
    for begins, ends, expression in _identifiers(text):
        pieces += [text[start:begins], str(value(expression))]
        start = ends
    return "".join(pieces) + text[start:]


def _identifiers(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each `IDENTIFIER(expression)` begins and ends, and its expression."""
    cursor = Cursor(text)
    while not cursor.is_done:
        begins = cursor.words[cursor.at].start
        if not cursor.sees("IDENTIFIER", "("):
            cursor.at += 1
            continue
        cursor.at += 1
        expression = cursor.brackets()
        yield begins, cursor.words[cursor.at - 1].end, expression
