"""Tables that a text names in an argument: by a name of the catalog, or by a path."""

from __future__ import annotations

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import path_of
from pyhudi.errors import Invalid, NotFound
from pyhudi.spark.session import SqlSession
from pyhudi.sql.words import Cursor


def table_of(session: SqlSession, said: object, *, what: str, is_written: bool = False) -> HudiTable:
    """The table that an argument names. `is_written`: with the session's options for writes, too.

    Raises: NotFound, Invalid.
    """
    text = str(said or "").strip()
    if not text:
        raise Invalid(f"{what}: expected the name of a table or its path, found nothing")
    if "/" in text or ":" in text:
        options = session.options_of_writes(None) if is_written else session.read_options()
        return HudiTable.open(path_of(text), options=options)
    cursor = Cursor(text)
    name = cursor.name("a table's name")
    cursor.end()
    entry = session.catalog.find_own(name)
    if entry is None:
        raise NotFound(f"{what}: expected a Hudi table '{text}' in the catalog, or a path, found none")
    return session.open(entry) if is_written else HudiTable.open(entry.path, options=session.read_options())
