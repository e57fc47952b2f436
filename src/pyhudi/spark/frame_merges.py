"""`HudiTable.merge` with a Spark DataFrame as source: its clauses make a `MERGE INTO`, which Spark evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.spark.sql.column_texts import literal
from pyhudi.engine.spark.sql.mistakes import GivenText, told_mistakes
from pyhudi.errors import Invalid, Unsupported
from pyhudi.spark.merges import carry_out
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import Action, Assigned, Match, Merge, MergeClause
from pyhudi.sql.words import quoted_name
from pyhudi.write.rows.changes import refuse_fields_of_structs, refuse_without_schema
from pyhudi.write.rows.clauses import GivenClause, MergeClauses, all_columns, given_clauses
from pyhudi.write.rows.merge import default_on
from pyhudi.write.rows.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.api.table import HudiTable
    from pyhudi.api.writes import WriteCall
    from pyhudi.table.view.snapshot import Snapshot
    from pyhudi.write.operation import WriteResult


@dataclass(frozen=True, slots=True)
class FrameMerges:
    """Carries merges of DataFrames out. `session_of`: the SQL of a session."""

    session_of: Callable[[SparkSession], SqlSession]

    def __call__(
        self, table: HudiTable, source: DataFrame, on: Any, clauses: MergeClauses, aliases: tuple[str, str],
        call: WriteCall,
    ) -> WriteResult:  # fmt: skip
        if source.isStreaming:
            raise Invalid("merge: the source is a stream; merge each of its batches, in foreachBatch")
        snapshot, _, settings = table._handle.prepare(call.options)
        refuse_without_schema(snapshot, "merge")
        refuse_fields_of_structs(snapshot.config, "merge")
        session = self.session_of(source.sparkSession)
        of_source, of_target = aliases
        Sides(pa.schema([]), pa.schema([]), of_target, of_source)  # refuses aliases that are none
        view, rows = session.new_view("target"), session.new_view("merge")
        texts = _Texts(session, snapshot, source, of_source, of_target)
        if on is None:
            on = default_on(snapshot.config, source.columns, is_global=settings.has_global_index)
        statement = Merge(
            target=(of_target,), alias=of_target, source=rows, source_alias=of_source,
            on=texts.on(on), clauses=tuple(texts.clauses(clauses)), ctes="",
        )  # fmt: skip
        what = f"merge into table '{table.name}'"
        with session.view(source, rows), told_mistakes(source.sparkSession, texts.given, what=what):
            return carry_out(session, statement, table, view, what="merge", call=call, settles=False)


class _Texts:
    """Conditions and values of a merge as SQL text."""

    def __init__(
        self, session: SqlSession, snapshot: Snapshot, source: DataFrame, of_source: str, of_target: str
    ) -> None:
        self._snapshot, self._source, self._of_source, self._of_target = snapshot, source, of_source, of_target
        self._columns = session.column_texts(source, alias=of_source, taken=of_source, what="merge")
        self.given: list[GivenText] = []

    def on(self, given: Any) -> str:
        if isinstance(given, str):
            if given not in self._source.columns:
                return self._text(given, "merge: on")
            given = [given]
        if not isinstance(given, Sequence) or not given or not all(isinstance(name, str) for name in given):
            raise Invalid(f"merge: on: expected SQL text or names of columns, found {given!r}")
        pairs = [(quoted_name(self._of_target, name), quoted_name(self._of_source, name)) for name in given]
        return " AND ".join(f"{target} = {source}" for target, source in pairs)

    def clauses(self, given: MergeClauses) -> Iterator[MergeClause]:
        yield from self._of_kind(Match.MATCHED, given.matched_update, given.matched_delete, "when_matched")
        yield from self._of_kind(Match.NOT_MATCHED, given.not_matched_insert, None, "when_not_matched")
        what = "when_not_matched_by_source"
        yield from self._of_kind(Match.BY_SOURCE, given.by_source_update, given.by_source_delete, what)

    def _of_kind(self, match: Match, update: Any, delete: Any, what: str) -> list[MergeClause]:
        to_set = Action.INSERT if match is Match.NOT_MATCHED else Action.UPDATE
        return [
            MergeClause(match, self._condition(one), Action.DELETE if one.deletes else to_set, self._assigned(one))
            for one in given_clauses(update, delete, what=what, has_source=match is not Match.BY_SOURCE)
        ]

    def _condition(self, given: GivenClause) -> str | None:
        where = given.when.where
        return None if where is None else self._text(where, f"{given.what}: the condition")

    def _assigned(self, given: GivenClause) -> tuple[Assigned, ...] | None:
        if given.deletes:
            return None
        what, values = given.what, given.when.set
        if values is True:
            names, table_name = self._snapshot.schema.names, self._snapshot.config.name
            values = all_columns(self._source.columns, self._of_source, names, table_name, what)
        if not hasattr(values, "items") or not values:
            raise Invalid(f"{what}: expected columns and their values, such as {{'n': 'source.n'}}, found {values!r}")
        return tuple(Assigned((name,), self._text(value, f"{what}: '{name}'")) for name, value in values.items())

    def _text(self, value: Any, what: str) -> str:
        """SQL text stays as it is; columns of PySpark and plain values become text."""
        if isinstance(value, str):
            self.given.append(GivenText(what, value))
            return value
        if isinstance(value, pc.Expression):
            raise Unsupported(
                f"{what}: a pyarrow.compute.Expression: expected SQL text, a column of PySpark or a value, as Spark "
                "merges the rows of a DataFrame"
            )
        return self._columns.text(literal(value.as_py() if isinstance(value, pa.Scalar) else value))
