"""`DataFrame.mergeInto` of a Hudi table: its calls make a `MERGE INTO`, which `merge()` carries out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.errors import Invalid, Unsupported
from pyhudi.spark.session import SqlSession
from pyhudi.spark.statements import run_sql
from pyhudi.sql.changes import Match
from pyhudi.sql.words import Cursor, Name, quoted_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ALIAS = "rows_of_merge"
"""Of a source that has no alias, or that of the table."""


class MergeWriter:
    """What `mergeInto` answers for a Hudi table, with the calls of PySpark's `MergeIntoWriter`.

    Columns of the DataFrame (`rows.name`) are the source's. Other names are looked for in both: `t.name` is the table's
    column, `source.name` that of `rows.alias("source")`.
    """

    def __init__(self, session: SqlSession, rows: DataFrame, target: Name, condition: Column) -> None:
        self._session, self._rows, self._target = session, rows, target
        self._texts = session.column_texts(rows, alias=_ALIAS, taken=target[-1], what="mergeInto")
        self._on = self.text_of(condition)
        self._whens: list[str] = []

    def whenMatched(self, condition: Column | None = None) -> WhenStored:  # noqa: N802  # PySpark's own names
        return WhenStored(self, Match.MATCHED, condition)

    def whenNotMatched(self, condition: Column | None = None) -> WhenNew:  # noqa: N802
        return WhenNew(self, Match.NOT_MATCHED, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> WhenStored:  # noqa: N802
        return WhenStored(self, Match.BY_SOURCE, condition)

    def withSchemaEvolution(self) -> MergeWriter:  # noqa: N802
        """Raises: Unsupported."""
        raise Unsupported("mergeInto(…).withSchemaEvolution(): MERGE adds no columns; ALTER TABLE … ADD COLUMNS first")

    def merge(self) -> None:
        """Carry the merge out, in one commit. Raises: as `MERGE INTO`."""
        if not self._whens:
            raise Invalid("mergeInto: expected whenMatched, whenNotMatched or whenNotMatchedBySource, found none")
        view = self._session.new_view("merge")
        text = (
            f"MERGE INTO {quoted_name(*self._target)} USING {view} AS {quoted_name(self._texts.alias)} "
            f"ON {self._on} {' '.join(self._whens)}"
        )
        with self._session.view(self._rows, view):
            run_sql(self._session, text)

    def text_of(self, column: Column) -> str:
        return self._texts.text(column)

    def add(self, when: str) -> MergeWriter:
        self._whens.append(when)
        return self


class _When:
    """A clause under way. `match`: the rows that it is about."""

    def __init__(self, writer: MergeWriter, match: Match, condition: Column | None) -> None:
        self._writer = writer
        self._when = f"WHEN {match.value}" + ("" if condition is None else f" AND {writer.text_of(condition)}")

    def _then(self, action: str) -> MergeWriter:
        return self._writer.add(f"{self._when} THEN {action}")

    def _texts(self, assignments: Mapping[str, Column]) -> dict[str, str]:
        """The texts of values by the columns that they are for."""
        if not assignments:
            raise Invalid("mergeInto: expected values by the columns that they are for, found none")
        found: dict[str, str] = {}
        for said, value in assignments.items():
            cursor = Cursor(said)
            name = quoted_name(*cursor.name())
            cursor.end()
            if name in found:
                raise Invalid(f"mergeInto: expected one value for column {name}, found two")
            found[name] = self._writer.text_of(value)
        return found


class WhenStored(_When):
    """What becomes of rows of the table."""

    def updateAll(self) -> MergeWriter:  # noqa: N802
        return self._then("UPDATE SET *")

    def update(self, assignments: Mapping[str, Column]) -> MergeWriter:
        pairs = ", ".join(f"{name} = {text}" for name, text in self._texts(assignments).items())
        return self._then(f"UPDATE SET {pairs}")

    def delete(self) -> MergeWriter:
        return self._then("DELETE")


class WhenNew(_When):
    """What becomes of rows of the DataFrame that the table does not have."""

    def insertAll(self) -> MergeWriter:  # noqa: N802
        return self._then("INSERT *")

    def insert(self, assignments: Mapping[str, Column]) -> MergeWriter:
        texts = self._texts(assignments)
        return self._then(f"INSERT ({', '.join(texts)}) VALUES ({', '.join(texts.values())})")
