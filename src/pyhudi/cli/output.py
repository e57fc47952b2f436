"""What commands print: tables for people, or one JSON document for programs. Each kind of error has an exit code."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from pyhudi.errors import (
    Conflict,
    CorruptFile,
    HudiError,
    Invalid,
    NotFound,
    OutcomeUnknown,
    Unavailable,
    Unsupported,
)

if TYPE_CHECKING:
    from rich.console import Console

DIFFERENT = 1
"""The exit code of a comparison that found differences, and of a look-up that did not find every key."""

EXIT_CODES: tuple[tuple[type[HudiError], int], ...] = (
    (Invalid, 2),
    (NotFound, 3),
    (CorruptFile, 4),
    (Conflict, 5),
    (Unavailable, 6),
    (OutcomeUnknown, 7),
    (Unsupported, 8),
)
OTHER_ERROR = 9


_COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command prints. `is_json`: standard output gets one JSON document and nothing else."""

    is_json: bool

    def document(self, value: object) -> None:
        """Print the answer for programs."""
        assert self.is_json
        typer.echo(printable(json.dumps(value, indent=2, ensure_ascii=False)))

    def table(self, title: str | None, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print rows as a table for people. Columns of numbers are aligned to the right."""
        from rich.markup import escape
        from rich.table import Table

        shown = Table(title=None if title is None else escape(printable(title)), title_justify="left")
        lines = [list(row) for row in rows]
        for number, heading in enumerate(headings):
            is_number = bool(lines) and all(isinstance(line[number], int | float) for line in lines)
            shown.add_column(heading, justify="right" if is_number else "left", overflow="fold")
        for line in lines:
            shown.add_row(*(escape(printable(shown_value(value))) for value in line))
        _console().print(shown)

    def line(self, text: str) -> None:
        _console().print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning to standard error, for people and programs alike."""
        typer.echo(printable(f"warning: {text}"), err=True)

    def confirm(self, question: str) -> bool:
        """Ask at the terminal whether to go on. An end of the answer, such as Ctrl-D, is a no.

        Raises: Invalid where there is nobody to ask, and for a program, which gets one JSON document and no question.
        """
        if self.is_json or not can_ask():
            why = "--json answers with one document" if self.is_json else "there is no terminal"
            raise Invalid(f"this asks first ('{question}'), and {why}: give --yes")
        try:
            return typer.confirm(printable(question), err=True)
        except typer.Abort:
            typer.echo(err=True)
            return False

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show a progress bar on standard error, if that is a terminal.

        The block gets a function `(done, total)`, to be called as the work goes on.
        """
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=self.is_json or not console.is_terminal) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn an error of pyhudi into one message and an exit code. Any other exception keeps its traceback."""
        try:
            yield
        except HudiError as error:
            self.fail(error)

    def fail(self, error: HudiError) -> NoReturn:
        if self.is_json:
            typer.echo(printable(json.dumps({"error": type(error).__name__, "message": str(error)})), err=True)
        else:
            typer.echo(printable(f"{type(error).__name__}: {error}"), err=True)
        code = next((code for kind, code in EXIT_CODES if isinstance(error, kind)), OTHER_ERROR)
        raise typer.Exit(code) from error


def can_ask() -> bool:
    """Whether somebody at a terminal can answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


def printable(text: str) -> str:
    """The text with dangerous characters as escapes. New lines stay.

    Dangerous are characters that command a terminal, or that reverse the order of letters. Somebody may have put them
    into a partition path or a key to deceive whoever prints it. Example: the escape character becomes `\\u001b`.
    """
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown_value(value: Any) -> str:
    """A value as people read it. Example: 1234567 becomes `1,234,567`, True becomes `yes`, None becomes `-`."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return str(value)


def _console() -> "Console":
    """The console for tables. If the output is no terminal but a pipe, it is wide, so that lines are not broken."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)
