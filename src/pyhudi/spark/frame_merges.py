"""`HudiTable.merge` with a Spark DataFrame as source: its clauses make a `MERGE INTO`, which Spark evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.spark.sql.column_texts import literal
from pyhudi.errors import Invalid, Unsupported
from pyhudi.spark.merges import carry_out
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import Action, Assigned, Match, Merge, MergeClause
from pyhudi.sql.words import quoted_name
from pyhudi.write.rows.clauses import (
    MergeClauses,
    When,
    all_columns,
    as_delete,
    as_update,
    listed,
    refuse_two_free,
)
from pyhudi.write.rows.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.api.table import HudiTable
    from pyhudi.api.writes import WriteCall
    from pyhudi.write.operation import WriteResult


@dataclass(frozen=True, slots=True)
class FrameMerges:
    """Carries merges of DataFrames out. `session_of`: the SQL of a session."""

    session_of: Callable[[SparkSession], SqlSession]

    def __call__(
        self, table: HudiTable, source: DataFrame, on: Any, clauses: MergeClauses, aliases: tuple[str, str],
        call: WriteCall,
    ) -> WriteResult:  # fmt: skip
        session = self.session_of(source.sparkSession)
        of_source, of_target = aliases
        Sides(pa.schema([]), pa.schema([]), of_target, of_source)  # refuses aliases that are none
        view, rows = session.new_view("target"), session.new_view("merge")
        texts = _Texts(session, table, source, of_source, of_target)
        statement = Merge(
            target=(of_target,), alias=of_target, source=rows, source_alias=of_source,
            on=texts.on(on), clauses=tuple(texts.clauses(clauses)), ctes="",
        )  # fmt: skip
        with session.view(source, rows):
            return carry_out(session, statement, table, view, what="merge", call=call)


class _Texts:
    """Conditions and values of a merge as SQL text."""

    def __init__(
        self, session: SqlSession, table: HudiTable, source: DataFrame, of_source: str, of_target: str
    ) -> None:
        self._table, self._source, self._of_source, self._of_target = table, source, of_source, of_target
        self._columns = session.column_texts(source, alias=of_source, taken=of_source, what="merge")

    def on(self, given: Any) -> str:
        if isinstance(given, str) and given not in self._source.columns:
            return given
        names = self._keys() if given is None else [given] if isinstance(given, str) else given
        if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
            raise Invalid(f"merge: on: expected SQL text or names of columns, found {given!r}")
        pairs = [(quoted_name(self._of_target, name), quoted_name(self._of_source, name)) for name in names]
        return " AND ".join(f"{target} = {source}" for target, source in pairs)

    def _keys(self) -> list[str]:
        """The columns that say which row it is: the key's, and those of the partition where the source has them."""
        table, known = self._table, {name.lower() for name in self._source.columns}
        if not table.record_key:
            raise Invalid(f"merge into table '{table.name}': expected on=…, as the table has no record key columns")
        return list(dict.fromkeys([*table.record_key, *(name for name in table.partition_by if name.lower() in known)]))

    def clauses(self, given: MergeClauses) -> Iterator[MergeClause]:
        """Of each kind of rows: clauses with a condition first, and of these and of the others deletes first."""
        yield from self._of_kind(Match.MATCHED, given.matched_update, given.matched_delete, "when_matched")
        yield from self._of_kind(Match.NOT_MATCHED, given.not_matched_insert, None, "when_not_matched")
        what = "when_not_matched_by_source"
        yield from self._of_kind(Match.BY_SOURCE, given.by_source_update, given.by_source_delete, what)

    def _of_kind(self, match: Match, update: Any, delete: Any, what: str) -> list[MergeClause]:
        action = Action.INSERT if match is Match.NOT_MATCHED else Action.UPDATE
        named = f"{what}_{action.value.lower()}"
        deletes = [(as_delete(one, f"{what}_delete"), f"{what}_delete", Action.DELETE) for one in listed(delete)]
        has_source = match is not Match.BY_SOURCE
        updates = [(as_update(one, named, has_source=has_source), named, action) for one in listed(update)]
        found = [*deletes, *updates]
        refuse_two_free([name for when, name, _ in found if when.where is None])
        ordered = sorted(found, key=lambda one: one[0].where is None)
        return [
            MergeClause(match, self._condition(when, name), kind, self._assigned(when, name, kind))
            for when, name, kind in ordered
        ]

    def _condition(self, when: When, what: str) -> str | None:
        return None if when.where is None else self._text(when.where, f"{what}: the condition")

    def _assigned(self, when: When, what: str, action: Action) -> tuple[Assigned, ...] | None:
        if action is Action.DELETE:
            return None
        values = when.set
        if values is True:
            names = self._table.schema().names
            values = all_columns(self._source.columns, self._of_source, names, self._table.name, what)
        if not hasattr(values, "items") or not values:
            raise Invalid(f"{what}: expected columns and their values, such as {{'n': 'source.n'}}, found {values!r}")
        return tuple(Assigned((name,), self._text(value, f"{what}: '{name}'")) for name, value in values.items())

    def _text(self, value: Any, what: str) -> str:
        """SQL text stays as it is; columns of PySpark and plain values become text."""
        if isinstance(value, str):
            return value
        if isinstance(value, pc.Expression):
            raise Unsupported(
                f"{what}: a pyarrow.compute.Expression: expected SQL text, a column of PySpark or a value, as Spark "
                "merges the rows of a DataFrame"
            )
        return self._columns.text(literal(value.as_py() if isinstance(value, pa.Scalar) else value))
