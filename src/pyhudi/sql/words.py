"""An SQL text as words with their places, and a cursor that reads clause after clause.

Expressions stay text: Spark evaluates them. Only their beginning and end are found here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import TypeAlias

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from pyhudi.errors import Invalid

Name: TypeAlias = tuple[str, ...]
"""The parts of a table's or column's name, such as `("db", "trips")`."""

Stop: TypeAlias = tuple[str, ...]
"""Words in a row, in capitals, at which a clause ends."""

_OPENING = ("(", "[", "{")
_CLOSING = (")", "]", "}")
_SHOWN_MAX = 60
_NUMBER = re.compile(r"[0-9]+(?:E[0-9]+)?(?:BD|[LSYDF])?", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.*?\*/|--(?:\\\n|[^\r\n])*", re.DOTALL)


class Kind(Enum):
    """What a word is. `NAME`: in backticks."""

    WORD = "word"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text. `text`: without its quotes. `start`, `end`: its place, the end excluded."""

    text: str
    kind: Kind
    start: int
    end: int

    @property
    def upper(self) -> str:
        """The word in capitals, if it may be a keyword or a sign; empty for names and strings in quotes."""
        return self.text.upper() if self.kind in (Kind.WORD, Kind.SIGN) else ""

    @property
    def is_name(self) -> bool:
        """Whether it may be a name of a table or a column. To Spark, `2024_sales` is one, and `2024L` a number."""
        return self.kind is Kind.NAME or (self.kind is Kind.WORD and _NUMBER.fullmatch(self.text) is None)


def words_of(text: str) -> list[Word]:
    """The words of an SQL text, without comments and semicolons at its end. Raises: Invalid for quotes left open."""
    try:
        # A bracket in front keeps sqlglot from taking what follows CALL or SHOW as one string.
        tokens = Spark().tokenize("(" + text)[1:]
    except TokenError as error:
        raise Invalid(f"SQL '{_short(text)}': {error}") from error

    words: list[Word] = []
    behind = visible = 0
    for token in tokens:
        start, end = token.start - 1, token.end
        visible, behind = max(visible, _end_of_comments(text, behind, start)), max(behind, end)
        if start < visible < end:
            raise Invalid(f"SQL '{_short(text)}': expected a comment to end outside of quotes, found a backslash in it")
        if start < visible or (words and start < words[-1].end):  # of `1L` sqlglot makes a cast
            continue
        words += _split(text, token.text, token.token_type.name, start, end)
    while words and words[-1].text == ";":
        words.pop()
    return words


def _end_of_comments(text: str, start: int, end: int) -> int:
    """Where comments between two words end. To Spark, one behind `--` goes on where a backslash ends its line."""
    if "\\\n" not in text[start:end]:
        return 0
    found = takewhile(lambda one: one.start() < end, _COMMENT.finditer(text, start))
    return max((one.end() for one in found), default=0)


def _split(text: str, said: str, kind: str, start: int, end: int) -> Iterator[Word]:
    """The words of a token: some keywords, such as PARTITIONED BY, are one token to sqlglot."""
    piece = text[start:end]
    if kind == "IDENTIFIER":
        yield Word(said, Kind.NAME, start, end)
    elif piece[:1] in ("'", '"') or piece[:2].lower() in ("r'", 'r"', "x'"):
        yield Word(said, Kind.STRING, start, end)
    elif kind == "NUMBER":
        yield Word(piece, Kind.NUMBER, start, end)
    elif re.match(r"\w", piece):
        for match in re.finditer(r"\w+", piece):
            yield Word(match[0], Kind.WORD, start + match.start(), start + match.end())
    else:
        yield Word(piece, Kind.SIGN, start, end)


class Cursor:
    """A place in an SQL text, which moves on as clauses are read."""

    def __init__(self, text: str, words: Sequence[Word] | None = None) -> None:
        self.text = text
        self.words = words_of(text) if words is None else words
        self.at = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.words)

    def word(self, further: int = 0) -> Word | None:
        """The word that comes next, or one further on; None beyond the end."""
        at = self.at + further
        return self.words[at] if at < len(self.words) else None

    def sees(self, *said: str) -> bool:
        """Whether these words come next."""
        return all((word := self.word(at)) is not None and word.upper == one for at, one in enumerate(said))

    def take(self, *said: str) -> bool:
        """Pass over these words, if they come next."""
        if self.sees(*said):
            self.at += len(said)
            return True
        return False

    def take_one(self, *choices: str) -> str | None:
        """Pass over one of these words, and tell which."""
        return next((one for one in choices if self.take(one)), None)

    def expect(self, *said: str) -> None:
        """Raises: Invalid where other words come next."""
        if not self.take(*said):
            raise self.wrong(" ".join(said))

    def wrong(self, expected: str) -> Invalid:
        """An error about the word that comes next."""
        word = self.word()
        found = "the end" if word is None else f"'{self.text[word.start : word.end]}' at character {word.start + 1:,}"
        return Invalid(f"SQL '{_short(self.text)}': expected {expected}, found {found}")

    def end(self) -> None:
        """Raises: Invalid where something is left."""
        if not self.is_done:
            raise self.wrong("the end of the statement")

    def name(self, what: str = "a name") -> Name:
        """The parts of a name, with dots between them."""
        parts = [self.part(what)]
        while self.take("."):
            parts.append(self.part(what))
        return tuple(parts)

    def part(self, what: str = "a name") -> str:
        """One name."""
        word = self.word()
        if word is None or not word.is_name:
            raise self.wrong(what)
        self.at += 1
        return word.text

    def string(self, what: str) -> str:
        """A text in quotes."""
        word = self.word()
        if word is None or word.kind is not Kind.STRING:
            raise self.wrong(f"{what} in quotes")
        self.at += 1
        return word.text

    def brackets(self) -> str:
        """The text in a pair of round brackets that comes next, without them."""
        if not self.sees("("):
            raise self.wrong("(")
        first = self.words[self.at]
        depth = 0
        while not self.is_done:
            word = self.words[self.at]
            depth += (word.text in _OPENING and word.kind is Kind.SIGN) - (
                word.text in _CLOSING and word.kind is Kind.SIGN
            )
            self.at += 1
            if depth == 0:
                return self.text[first.end : word.start]
        raise self.wrong(")")

    def until(self, *stops: Stop) -> str:
        """The text from here to the first of the stops that is in no brackets and no CASE, or to the end."""
        start, depth, cases = self.at, 0, 0
        while not self.is_done:
            is_field = self.at > start and self.words[self.at - 1].upper == "."  # t.end and s.then are columns
            if depth == 0 and cases == 0 and not is_field and any(self.sees(*stop) for stop in stops):
                break
            word = self.words[self.at]
            if word.kind is Kind.SIGN:
                depth += (word.text in _OPENING) - (word.text in _CLOSING)
            if not is_field:
                cases += (word.upper == "CASE") - (word.upper == "END" and cases > 0)
            self.at += 1
        return self.slice(start, self.at)

    def slice(self, start: int, end: int) -> str:
        """The text from one word to before another."""
        return self.text[self.words[start].start : self.words[end - 1].end] if end > start else ""

    def rest(self) -> str:
        """The text that is left."""
        start, self.at = self.at, len(self.words)
        return self.slice(start, self.at)


def split_list(text: str) -> list[str]:
    """The elements of a list with commas between them. Commas in brackets separate nothing. Comments at ends go."""
    cursor, pieces, start, depth = Cursor(text), [], 0, 0
    for at, word in enumerate(cursor.words):
        if word.kind is not Kind.SIGN:
            continue
        depth += (word.text in _OPENING) - (word.text in _CLOSING)
        if word.text == "," and depth == 0:
            pieces.append(cursor.slice(start, at))
            start = at + 1
    pieces.append(cursor.slice(start, len(cursor.words)))
    return [piece for piece in pieces if piece]


def quoted_name(*parts: str) -> str:
    """A name as SQL text, in backticks."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quoted_text(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_MAX else f"{line[:_SHOWN_MAX]}…"
