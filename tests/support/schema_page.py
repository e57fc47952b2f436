"""The page docs/schema-matrix.md: its tables, as text and as values.

`python -m tests.support.schema_page` writes it anew.
"""

import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from tests.support.schema_cells import OPTIONS, cells, run_cell
from tests.support.schema_changes import CHANGES

PAGE = Path(__file__).parents[2] / "docs" / "schema-matrix.md"

Seen = Mapping[tuple[str, str], str]
"""The name of a change, and the column of the page -> what becomes of the table's columns."""

_HEAD = """# Changes of the schema by writes: the matrix

What becomes of a table's columns where the rows of a write have other columns. `python -m tests.support.schema_page`
runs every cell and writes this page. Tests run cells of each change and compare them with it
(`tests/unit/write/test_schema_matrix.py`).

* **refused**: an error that names each column that does not fit. Nothing was written: the table's files are the same
  as before.
* **as before**: the table keeps its columns and types. Rows are stored in them.
* **added**, **new type**, **dropped**, **may be null**: what becomes of the table's column. Rows of before are read by
  it, and so are the new ones: by scans, by filters on the column, by incremental queries, after further writes and
  after a compaction. Time travel shows the columns of before.
* **no such table**: a table with such a column has no history of columns.

Each cell is the same for upsert, insert, bulk insert, insert overwrite of partitions and of the table, on copy-on-write
and merge-on-read tables of versions 6, 8 and 9. There is one exception: an upsert into a merge-on-read table of version
8 or 9 may have some of the columns. The column *some columns, into a log* tells of it. The other columns of these rows
keep their values. A delete looks at key, partition and ordering columns alone.

The options are `hoodie.datasource.write.reconcile.schema` (or `hoodie.write.set.null.for.missing.columns`),
`hoodie.datasource.write.schema.allow.auto.evolution.column.drop` and `hoodie.datasource.write.new.columns.nullable`.
*Columns altered before*: the table has a history of columns, as after `table.alter()`, or `ALTER TABLE` with schema on
read. `hoodie.write.schema` is refused: the schema of a write is that of its rows. Tables have column statistics, but
for `column.drop`: it is refused where an index tells of the column. [Schema evolution](schema-evolution.md) says the
rest.
"""


def page_of(seen: Seen) -> str:
    """The text of the page."""
    parts = [_HEAD]
    for group, changes in groupby(CHANGES, key=lambda change: change.group):
        rows = [[change.name, *(seen[change.name, option] for option in OPTIONS)] for change in changes]
        table = [["the input has", *OPTIONS], ["---"] * (len(OPTIONS) + 1), *rows]
        parts.append(f"\n## {group}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in table))
    return "".join(parts)


def seen_on(page: str) -> Seen:
    """What the page says. Exact inverse of `page_of`."""
    rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\| .* \|$", page, re.MULTILINE)]
    return {
        (row[0], option): cell
        for row in rows
        if row[0] not in ("the input has", "---")
        for option, cell in zip(OPTIONS, row[1:], strict=True)
    }


if __name__ == "__main__":
    found: dict[tuple[str, str], str] = {}
    for one in CHANGES:
        for cell in cells(one):
            if (one.name, cell.option) not in found:
                found[one.name, cell.option] = run_cell(cell)
    PAGE.write_text(page_of(found), encoding="utf-8")
