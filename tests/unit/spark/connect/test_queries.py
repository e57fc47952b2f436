"""A condition could be taken at its word although Spark puts values into its text."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyhudi.spark.connect import queries
from pyhudi.sql.reads import Read

TEXT = "SELECT x FROM t WHERE id = 'k{n}'"


@pytest.mark.parametrize("has_places,expected", [(True, None), (False, "id = 'k{n}'")])
def test_conditions_with_places_prune_nothing(
    monkeypatch: pytest.MonkeyPatch, has_places: bool, expected: str | None
) -> None:
    asked: list[Read] = []
    session: Any = SimpleNamespace(named={}, new_view=lambda what: what)
    monkeypatch.setattr(queries, "_rows", lambda session, read, *given, **named: asked.append(read))
    assert queries.with_named_rows(session, TEXT, has_places=has_places) == TEXT
    assert [read.alone_where for read in asked] == [expected]
