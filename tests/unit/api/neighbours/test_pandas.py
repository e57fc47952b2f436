"""A pandas DataFrame could give a table columns that its user never named."""

from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    "change,names",
    [
        (lambda rows: rows[rows.n > 1], ["id", "n"]),
        (lambda rows: pd.concat([rows[:2], rows[2:]], keys=["x", "y"]), ["id", "n"]),
        (lambda rows: rows.set_index("id"), ["n", "id"]),
        (lambda rows: rows.set_index("id", append=True)[1:], ["n", "id"]),
    ],
    ids=["filtered", "two levels", "named", "one of two named"],
)
def test_an_index_is_a_column_if_it_has_a_name(change: Any, names: list[str]) -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    rows = change(pd.DataFrame({"id": ["a", "b", "c"], "n": [1, 2, 3]}))
    table.upsert(rows)
    assert table.schema().names == names
    assert table.delete(rows).deleted == len(rows)
