"""Expressions of a statement that DataFrame calls evaluate, under Spark Connect: their subqueries read views."""

from __future__ import annotations

from contextlib import ExitStack

from pyhudi.engine.spark.connect.named_rows import names_in
from pyhudi.spark.connect.queries import with_named_rows
from pyhudi.spark.session import SqlSession


def with_views(session: SqlSession, text: str, held: ExitStack) -> str:
    """The expression with names of views in place of Hudi tables in its subqueries. `held`: how long they live.

    Spark resolves an expression of a DataFrame when its rows are asked for, and no DataFrame goes along with it.
    """
    named = with_named_rows(session, text)
    for name in names_in(named):
        session.named[name].createOrReplaceTempView(name)
        held.callback(session.spark.catalog.dropTempView, name)
    return named
