"""A write whose rows have other columns than the table could be let in and be read otherwise than it was meant, or be
refused when it has begun to write.

Each cell of the matrix is a table, a change of the columns, an option and a write. A cell is run, all that the table
shows is compared with a model of its rows, and what became of the columns with the page of the docs.
"""

from functools import cache

import pytest

from tests.support.schema_cells import OPTIONS, Cell, cells, run_cell
from tests.support.schema_changes import CHANGES, Change
from tests.support.schema_page import PAGE, Seen, page_of, seen_on

STEP = 7


@cache
def on_page() -> Seen:
    return seen_on(PAGE.read_text(encoding="utf-8"))


def test_the_page_is_the_one_that_is_made() -> None:
    assert page_of(on_page()) == PAGE.read_text(encoding="utf-8")
    assert {name for name, _ in on_page()} == {change.name for change in CHANGES}


def sample() -> list[Cell]:
    """A cell of every other change, and each option, table and write several times."""
    chosen = []
    for number, change in enumerate(CHANGES[::2]):
        every = list(cells(change))
        chosen.append(every[number * 41 % len(every)])
    return chosen


def test_a_sample_of_all_cells_is_as_the_page_says() -> None:
    assert {cell.option for cell in sample()} == {*OPTIONS}
    for cell in sample():
        assert run_cell(cell) == on_page()[cell.change.name, cell.option], cell


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_each_change_is_as_the_page_says(change: Change) -> None:
    """A seventh of its cells, and other ones than those of its neighbours: each table, option and write is among them.

    `python -m tests.support.schema_page` runs them all.
    """
    for cell in list(cells(change))[CHANGES.index(change) % STEP :: STEP]:
        assert run_cell(cell) == on_page()[change.name, cell.option], cell
