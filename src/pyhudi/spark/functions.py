"""Table functions over Hudi tables, by a table's name or its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import SCAN, path_of
from pyhudi.engine.spark.sql.table_functions import register_table_function
from pyhudi.errors import Invalid, NotFound
from pyhudi.spark.session import SqlSession
from pyhudi.sql.words import Cursor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.engine.spark.sql.table_functions import Answer


def register_functions(spark: SparkSession, session_of: Callable[[SparkSession], SqlSession]) -> None:
    """Make the functions known to SQL. `session_of`: the session that a query is analysed for."""

    def on(answer: Callable[..., DataFrame], *names: str) -> Answer:
        def call(found: SparkSession, given: Sequence[object], named: Mapping[str, object]) -> DataFrame:
            return answer(session_of(found), *_bound(names, given, named, what=answer.__name__.strip("_")))

        return call

    register_table_function(spark, SCAN, on(_hudi_scan, "path", "as_of"))


def _bound(
    names: Sequence[str], given: Sequence[object], named: Mapping[str, object], *, what: str
) -> list[object | None]:
    """The arguments in the order of their names, None for those that are left out. Raises: Invalid."""
    if len(given) > len(names):
        raise Invalid(f"{what}: expected at most {len(names)} arguments ({', '.join(names)}), found {len(given)}")
    found: dict[str, object | None] = dict(zip(names, given, strict=False))
    for name, value in named.items():
        if name not in names or name in found:
            raise Invalid(f"{what}: expected the arguments {', '.join(names)}, each once, found '{name}'")
        found[name] = value
    return [found.get(name) for name in names]


def _hudi_scan(session: SqlSession, path: object, as_of: object) -> DataFrame:
    """The rows of the table at a path, now or as of a moment."""
    table = HudiTable.open(str(path), options=session.read_options())
    return table.scan(as_of=None if as_of is None else str(as_of)).to_spark(session.spark)


def table_of(session: SqlSession, said: object, *, what: str) -> HudiTable:
    """The table that an argument names, by its name or its path. Raises: NotFound, Invalid."""
    text = str(said or "").strip()
    if not text:
        raise Invalid(f"{what}: expected the name of a table or its path, found nothing")
    if "/" not in text and ":" not in text:
        cursor = Cursor(text)
        name = cursor.name("a table's name")
        cursor.end()
        entry = session.catalog.find(name)
        if entry is None:
            raise NotFound(f"{what}: expected a Hudi table '{text}' in the catalog, or a path, found none")
        return HudiTable.open(entry.path, options=session.read_options())
    return HudiTable.open(path_of(text), options=session.read_options())
