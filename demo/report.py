"""What the demo shows: a progress bar, a line a step with what it cost, and small tables."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from pyhudi import WriteResult

_WIDTHS = {"inserted": 8, "updated": 7, "deleted": 7, "files": 5, "MB": 5, "seconds": 7}
_STEP_WIDTH = 26
_NARROW = _STEP_WIDTH + sum(_WIDTHS.values()) + 2 * len(_WIDTHS)


@dataclass
class Cost:
    """What a step cost, filled in by the step. `counts`: by the names of `_WIDTHS`."""

    counts: dict[str, str]
    seconds: float = 0.0

    def of_write(self, result: WriteResult) -> None:
        for name in ("inserted", "updated", "deleted", "files"):
            value = getattr(result, name)
            self.counts[name] = f"{value:,}" if value else "-"
        self.counts["MB"] = f"{result.size_bytes / 1e6:.1f}"


class Report:
    """The demo's screen. A narrow one gets two lines a step."""

    def __init__(self, console: Console, steps: int) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=steps)
        self._is_narrow = console.width < _NARROW

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._progress:
            if not self._is_narrow:
                self._print_line("", {name: name for name in _WIDTHS}, style="dim")
            yield

    @contextmanager
    def step(self, name: str) -> Iterator[Cost]:
        """One step: the bar names it while it runs, a line states its cost when it has ended."""
        self._progress.update(self._task, description=name)
        cost, start = Cost({}), time.perf_counter()
        yield cost
        cost.seconds = time.perf_counter() - start
        self._progress.advance(self._task)
        cost.counts["seconds"] = f"{cost.seconds:.1f}"
        if self._is_narrow:
            self._print_two_lines(name, cost.counts)
        else:
            self._print_line(name, cost.counts)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A small table: numbers to the right, texts to the left."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for at, name in enumerate(columns):
            is_number = bool(rows) and all(isinstance(row[at], int | float) for row in rows)
            table.add_column(name, justify="right" if is_number else "left")
        for row in rows:
            table.add_row(*map(_cell, row))
        self._console.print(f"\n[bold]{title}[/bold]", highlight=False)
        self._console.print(table)

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False)

    def code(self, text: str) -> None:
        """Lines to copy: shown whole, whatever the width."""
        self._console.print("\n".join(f"    {line}" for line in text.splitlines()), highlight=False, soft_wrap=True)
        self._console.print()

    def _print_line(self, name: str, counts: dict[str, str], style: str = "") -> None:
        cells = "".join(f"  {counts.get(column, ''):>{width}}" for column, width in _WIDTHS.items())
        self._console.print(f"{name:<{_STEP_WIDTH}}{cells}", style=style, highlight=False, soft_wrap=True)

    def _print_two_lines(self, name: str, counts: dict[str, str]) -> None:
        told = [f"{counts[column]} {column}" for column in _WIDTHS if counts.get(column, "-") != "-"]
        told = ["1 file" if text == "1 files" else text for text in told]
        self._console.print(f"{name}\n  {', '.join(told)}", highlight=False)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
