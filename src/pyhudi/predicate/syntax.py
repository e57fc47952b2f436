"""Parses predicate text to sqlglot's syntax tree, and names positions in the text for messages."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from pyhudi.errors import Invalid, Unsupported
from pyhudi.predicate.functions.spark_names import SPARK_FUNCTIONS

_DIALECT = Dialect.get_or_raise("spark")
_AS_WRITTEN = ("FROM_UNIXTIME", "DATE_FORMAT", "TO_DATE", "UNIX_TIMESTAMP", "DATE_ADD", "DATE_SUB")
"""Functions that sqlglot would rewrite for other dialects, their date patterns included."""
_NO_FUNCTIONS = ("TRY_CAST",)
"""What is written like a function of Spark, and is none."""
_ARGUMENT_COUNTS_MAX = {
    **dict.fromkeys(("length", "len", "char_length", "character_length", "isnull", "isnotnull"), 1),
    **dict.fromkeys(("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"), 1),
    **dict.fromkeys(("date", "timestamp"), 1),
    **dict.fromkeys(("mod", "div", "ifnull", "nvl", "contains", "rlike", "regexp_like", "to_timestamp"), 2),
    **dict.fromkeys(("substr", "substring", "like"), 3),
}
"""Functions of which sqlglot takes more arguments than Spark does; it passes over the rest, or means other things."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")

SHOWN_MAX = 300
"""A message shows at most so many characters of a predicate."""


class _Parser(type(_DIALECT.parser())):  # type: ignore[misc]
    FUNCTIONS = {  # noqa: RUF012 (as sqlglot declares it)
        name: made
        for name, made in type(_DIALECT.parser()).FUNCTIONS.items()
        if name not in _AS_WRITTEN and name.lower() in SPARK_FUNCTIONS
    }
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse
        for name, parse in type(_DIALECT.parser()).FUNCTION_PARSERS.items()
        if name in _NO_FUNCTIONS or name.lower() in SPARK_FUNCTIONS
    }


def parse_syntax(text: str) -> exp.Expr:
    """The tree of one Spark SQL predicate.

    Raises: Invalid, with the position of the first token that does not fit.
    """
    if (surrogate := _SURROGATE.search(text)) is not None:
        raise Invalid(
            f"where {shown(text)} at character {surrogate.start() + 1}: expected text, found half a character"
        )
    try:
        tokens = _joined_strings(_DIALECT.tokenize(text), text)
        _refuse_lenient(tokens, text)
        trees = _Parser(dialect=_DIALECT).parse(tokens, text)
    except TokenError as error:
        raise Invalid(f"where {shown(text)}: a quote or comment is not closed") from error
    except ParseError as error:
        raise Invalid(_syntax_message(text, error)) from error
    except RecursionError as error:
        raise nested_too_deeply(text) from error
    if len(trees) != 1 or trees[0] is None:
        found = len(trees) if text.strip() else "none"
        raise Invalid(f"where {shown(text)}: expected one predicate, found {found}")
    return trees[0]


def _refuse_lenient(tokens: list[Token], text: str) -> None:
    """Raises: Invalid for what sqlglot takes and Spark does not: parentheses left open, empty or further arguments."""
    opened: list[tuple[Token, str, int]] = []  # each with the function's name, and the commas so far
    for before, token in pairwise([None, *tokens]):
        assert token is not None
        if token.token_type == TokenType.L_PAREN:
            opened.append((token, "" if before is None else before.text.lower(), 0))
        elif token.token_type == TokenType.COMMA and opened:
            parenthesis, name, commas = opened.pop()
            opened.append((parenthesis, name, commas + 1))
        elif token.token_type == TokenType.R_PAREN and opened:
            _, name, commas = opened.pop()
            if before is not None and before.token_type == TokenType.COMMA:
                raise _refused(token, text, "expected a value behind the comma")
            if commas >= _ARGUMENT_COUNTS_MAX.get(name, commas + 1):
                raise _refused(token, text, f"{name} takes {_ARGUMENT_COUNTS_MAX[name]} arguments at most")
    if opened:
        raise _refused(opened[0][0], text, "Expecting )")


def _refused(token: Token, text: str, why: str) -> Invalid:
    return Invalid(f"where {shown(text)} at character {token.start + 1}, {token.text!r}: {why}")


def as_ifs(tree: exp.Expr) -> exp.Expr:
    """A CASE or NULLIF written with IF alone: `CASE a WHEN 1 THEN x END` is `IF(a = 1, x, NULL)`."""
    if isinstance(tree, exp.Nullif):
        return exp.If(this=exp.EQ(this=tree.this, expression=tree.expression), true=exp.Null(), false=tree.this)
    result = tree.args.get("default") or exp.Null()
    for branch in reversed(tree.args["ifs"]):
        test = branch.this if tree.this is None else exp.EQ(this=tree.this, expression=branch.this)
        result = exp.If(this=test, true=branch.args["true"], false=result)
    return result


def nested_too_deeply(text: str) -> Invalid:
    return Invalid(
        f"where {shown(text)}: nested too deeply; write lists of values as IN (…), and leave out parentheses that "
        "change nothing"
    )


def shown(text: str) -> str:
    """A predicate as a message shows it. Of a long predicate only the beginning is shown."""
    return repr(text) if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]!r}…"


def portable_text(text: str) -> str:
    """The same predicate without doubled quotes in literals: Spark before 4.0 drops such quotes."""
    parts: list[str] = []
    start = 0
    for one, other in pairwise(_DIALECT.tokenize(text)):
        if _is_doubled_quote(one, other, text):
            parts += text[start : one.end], f"\\{text[one.end]}"
            start = other.start + 1
    return "".join([*parts, text[start:]])


def _is_doubled_quote(one: Token, other: Token, text: str) -> bool:
    """Whether two tokens are one literal that has a doubled quote in it, as in 'it''s'."""
    both_text = one.token_type == TokenType.STRING == other.token_type
    return both_text and one.end + 1 == other.start and text[one.start] == text[other.start]


def _syntax_message(text: str, error: ParseError) -> str:
    if not error.errors:
        return f"where {shown(text)}: expected a predicate, found {error}"
    first = error.errors[0]
    near = first.get("highlight") or ""
    what = str(first.get("description") or "syntax error").split(" for <class")[0]
    return f"where {shown(text)}, line {first.get('line')}, column {first.get('col')}, at {near!r}: {what}"


def _joined_strings(tokens: list[Token], text: str) -> list[Token]:
    """The tokens, with string literals unescaped as in Spark. A doubled quote in a literal becomes one quote.

    ISNULL and NOTNULL are names: `a NOTNULL` is no test in Spark.
    """
    joined: list[Token] = []
    for token in tokens:
        if text[token.start : token.end + 1] == "::":
            raise Unsupported(f"where {shown(text)} at character {token.start + 1}: '::'; write CAST(… AS …)")
        if token.token_type in (TokenType.ISNULL, TokenType.NOTNULL):
            joined.append(_token(TokenType.VAR, token, token.text, token.end))
            continue
        if token.token_type != TokenType.STRING:
            joined.append(token)
            continue

        quote = text[token.start]
        try:
            content = unescape(text[token.start + 1 : token.end])
        except (ValueError, OverflowError) as error:
            raise Unsupported(f"where {shown(text)} at character {token.start + 1}: no such character") from error
        last = joined[-1] if joined else None
        if last is not None and _is_doubled_quote(last, token, text):
            joined[-1] = _token(TokenType.STRING, last, last.text + quote + content, token.end)
        else:
            joined.append(_token(TokenType.STRING, token, content, token.end))
    return joined


def _token(kind: TokenType, token: Token, content: str, end: int) -> Token:
    return Token(
        kind,
        content,
        line=token.line,
        col=token.col,
        start=token.start,
        end=end,
        comments=token.comments,
    )


def unescape(content: str) -> str:
    """The text that a Spark string literal stands for. `\\%` and `\\_` keep their backslash, which LIKE needs.

    Two halves of a character (UTF-16) are one. Half a character is a question mark, in Spark, too.
    Raises: ValueError, OverflowError for a character beyond those of Unicode.
    """

    def meaning(match: re.Match[str]) -> str:
        short, long, octal, char = match.groups()
        if short or long:
            return chr(int(short or long, 16))
        if octal:
            return chr(int(octal, 8))
        return _ESCAPED.get(char, char)

    halves = _ESCAPE.sub(meaning, content)
    whole = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), halves)
    return _SURROGATE.sub("?", whole)


def place_of(node: exp.Expr, text: str) -> str:
    """Where the node starts in the text, for a message."""
    start, end = _span_of(node, text)
    part = text[start:end]
    part = part if len(part) <= 60 else f"{part[:57]}…"
    return f"where {shown(text)} at character {start + 1}, {part!r}"


def called(node: exp.Expr, text: str) -> str:
    """What a node is, as the user writes it: a function by its name in the text."""
    if isinstance(node, exp.Func) and "start" in node.meta:
        return f"the function {text[node.meta['start'] : node.meta['end'] + 1]}"
    return "the expression"


def _span_of(node: exp.Expr, text: str) -> tuple[int, int]:
    """Where a node begins and ends in the text.

    sqlglot notes it of names and literals only. Where it writes the node as the text does, this is the place; else it
    reaches from the first of these names and literals to the last, with the parentheses that are open by then.
    """
    spans = [(part.meta["start"], part.meta["end"] + 1) for part in node.walk() if "start" in part.meta]
    start, end = (min(one for one, _ in spans), max(other for _, other in spans)) if spans else (0, len(text))
    words = re.findall(r"\w+|[^\w\s]", node.sql(dialect="spark"))
    if len(words) <= SHOWN_MAX:
        for match in re.finditer(r"\s*".join(map(re.escape, words)), text, re.IGNORECASE):
            if not spans or match.start() <= start < match.end():
                return match.span()
    for token in _DIALECT.tokenize(text):
        if token.start >= end:
            is_open = any(text.count(one, start, end) > text.count(other, start, end) for one, other in ("()", "[]"))
            if not is_open or token.text not in (")", "]"):
                break
            end = token.end + 1
    return start, end
