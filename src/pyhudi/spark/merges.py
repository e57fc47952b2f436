"""MERGE INTO, carried out: one join by Spark says what becomes of each row, in one commit of one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.api.clock import random_uuid
from pyhudi.api.rows.frame_changes import LEAVES_COLUMN, STORED_PATH_COLUMN, FrameChange, ReadRows, change_by_frame
from pyhudi.api.table import HudiTable
from pyhudi.api.writes import WriteCall
from pyhudi.engine.spark.sql.catalog import CatalogEntry
from pyhudi.engine.spark.sql.columns import table_columns
from pyhudi.engine.spark.sql.looks import distinct_values, has_gaps, is_small
from pyhudi.engine.spark.sql.merged_rows import (
    IS_NEW,
    KIND,
    NO_CLAUSE,
    ClauseValues,
    MergeShape,
    merged_rows,
    pair_columns,
    refuse_stored,
)
from pyhudi.engine.spark.write.kept import KeptRows
from pyhudi.engine.spark.write.keys import partition_text
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import META_FIELDS, RECORD_KEY
from pyhudi.merge.rules import MergeMode
from pyhudi.spark.plain_columns import one_spelling, plain_types
from pyhudi.spark.queries import run_query
from pyhudi.spark.row_changes import assigned_columns, of_one_snapshot, stores_paths, told_refusals
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import Action, Assigned, Match, Merge, MergeClause, read_merge
from pyhudi.sql.heads import Head
from pyhudi.sql.join_conditions import equal_columns
from pyhudi.sql.one_sided import name_sides
from pyhudi.sql.words import quoted_name, quoted_text
from pyhudi.table.read.path_times import with_path_times
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import Operation
from pyhudi.write.operation import WriteResult
from pyhudi.write.rows.changes import refuse_fields_of_structs, staying_columns
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TARGET = "__pyhudi_target"
_SOURCE = "__pyhudi_source"
_VALUES_MAX = 1_000
"""Values of a source's column up to which files are chosen by them."""
_BROADCAST_ROWS_MAX = 200_000
"""Rows of a source up to which each task gets all of them."""
_NAMES_WITHIN_SELECT = "spark.sql.lateralColumnAlias.enableImplicitResolution"


def merge_rows(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`MERGE INTO`."""
    view = session.new_view("target")
    statement = read_merge(of_one_snapshot(session, head, entry, view))
    carry_out(session, statement, session.open(entry), view, what="MERGE INTO")
    return session.nothing()


def carry_out(
    session: SqlSession, statement: Merge, table: HudiTable, view: str, *, what: str, call: WriteCall | None = None,
    settles: bool = True,
) -> WriteResult:  # fmt: skip
    """Carry a merge out. `view`: names the table's rows in the statement. `what`: the merge, for errors.

    `settles`: whether event-time ordering settles what is an error in Python: a changed row that is less than the
    stored one stays as it was, and of several new rows of a key the greatest is stored.
    """
    with ExitStack() as held:
        merge = _Merge(session, statement, table, held, view, settles)
        change = FrameChange(Operation.UPSERT, merge.rows, what, marks_deletes=True)
        with told_refusals():
            return change_by_frame(table, change, session.spark, call)


@dataclass
class _Merge:
    """A merge under way. `held`: what lives until its end. `view`, `settles`: as in `carry_out`."""

    session: SqlSession
    statement: Merge
    table: HudiTable
    held: ExitStack
    view: str
    settles: bool

    def __post_init__(self) -> None:
        self._kept = KeptRows()
        self.held.callback(self._kept.release)

    def rows(self, snapshot: Snapshot, settings: WriteSettings, read: ReadRows) -> DataFrame:
        """The rows to write, made of a snapshot."""
        refuse_fields_of_structs(snapshot.config, "MERGE")
        self._refuse_settings()
        statement, session = self.statement, self.session
        with ExitStack() as views:
            stored = read(None)
            views.enter_context(session.view(stored, self.view))
            source = run_query(session, f"{statement.ctes} SELECT *, true AS {_SOURCE} FROM {statement.source}")
            self.statement = name_sides(statement, stored.columns, source.columns)
            source = self._kept.keep(source)
            source_view = views.enter_context(session.view(source, session.new_view("source")))
            clauses = self._clauses(snapshot, source)
            near = read(self._condition(snapshot, source)) if self._reads_matches_only else stored
            target = session.new_view("target")
            views.enter_context(session.view(near.selectExpr("*", f"true AS {_TARGET}"), target))
            hint = self._hint(source)
            if hint and self._adds_rows:
                target = views.enter_context(self._matching(target, source_view))
            values = [self._values(clause, assigned, snapshot) for clause, assigned in clauses]
            shape = self._shape(snapshot, settings)
            pairs = run_query(session, self._join(target, source_view, hint, pair_columns(values, shape)))
            found = merged_rows(pairs, values, shape)
            if self._must_look_up(clauses, snapshot, source, shape, is_global=settings.has_global_index):
                found = self._kept.keep(found)
                refuse_stored(found, stored, shape)
        return found.drop(IS_NEW)

    def _refuse_settings(self) -> None:
        """Raises: Unsupported where a column of a SELECT may not name another one of it, as values name their clause's
        number.
        """
        if self.session.spark.conf.get(_NAMES_WITHIN_SELECT, "true") != "true":
            raise Unsupported(f"MERGE in a session with {_NAMES_WITHIN_SELECT}=false; set it to true, as Spark has it")

    @property
    def _adds_rows(self) -> bool:
        return any(clause.match is Match.NOT_MATCHED for clause in self.statement.clauses)

    @property
    def _reads_matches_only(self) -> bool:
        """Whether rows of the table without a match stay as they are."""
        return all(clause.match is not Match.BY_SOURCE for clause in self.statement.clauses)

    def _condition(self, snapshot: Snapshot, source: DataFrame) -> str | None:
        """A predicate of the rows that may match: the values of a small source in columns that must be equal."""
        equal = equal_columns(self.statement.on, self.statement.alias, self.statement.source_alias) or {}
        types, given = plain_types(snapshot.schema), one_spelling(source.columns)
        spelled = one_spelling(types)
        pairs = {
            spelled[name.lower()]: given[other] for name, other in equal.items()
            if name.lower() in spelled and other in given
        }  # fmt: skip
        values = distinct_values(source, tuple(pairs.values()), most=_VALUES_MAX) if pairs else None
        if values is None:
            return None
        texts = []
        for name, other in pairs.items():
            is_text = types[name] == "text"
            kind = str if is_text else int
            if not values[other] or any(type(value) is not kind for value in values[other]):
                return None
            literals = [quoted_text(str(value)) if is_text else str(value) for value in values[other]]
            texts.append(f"{quoted_name(name)} IN ({', '.join(literals)})")
        return " AND ".join(texts)

    def _hint(self, source: DataFrame) -> str:
        """The side that each task gets whole, where a source is small: else Spark would shuffle the table."""
        if not self._reads_matches_only or not is_small(source, most=_BROADCAST_ROWS_MAX):
            return ""
        return quoted_name(self.statement.alias if self._adds_rows else self.statement.source_alias)

    @contextmanager
    def _matching(self, target: str, source: str) -> Iterator[str]:
        """A view of the table's rows that a small source matches: they are few, and each task gets them."""
        statement, view = self.statement, self.session.new_view("matching")
        alias, of_source = quoted_name(statement.alias), quoted_name(statement.source_alias)
        rows = run_query(
            self.session,
            f"{statement.ctes} SELECT /*+ BROADCAST({of_source}) */ {alias}.* FROM {target} AS {alias} "
            f"LEFT SEMI JOIN {source} AS {of_source} ON {statement.on}",
        )
        with self.session.view(rows, view):
            yield view

    def _join(self, target: str, source: str, hint: str, columns: Sequence[str]) -> str:
        statement = self.statement
        joins = {
            (False, False): "INNER", (True, False): "RIGHT OUTER", (False, True): "LEFT OUTER",
            (True, True): "FULL OUTER",
        }  # fmt: skip
        join = joins[self._adds_rows, not self._reads_matches_only]
        hinted = f"/*+ BROADCAST({hint}) */ " if hint else ""
        alias = quoted_name(statement.alias)
        return (
            f"{statement.ctes} SELECT {hinted}{self._kind()} AS {KIND}, {', '.join(columns)} FROM {target} AS {alias} "
            f"{join} JOIN {source} AS {quoted_name(statement.source_alias)} ON {statement.on}"
        )

    def _kind(self) -> str:
        """The number of the clause that takes a pair, as SQL text; null where none does."""
        statement = self.statement
        target = f"{quoted_name(statement.alias)}.{_TARGET} IS NOT NULL"
        source = f"{quoted_name(statement.source_alias)}.{_SOURCE} IS NOT NULL"
        sides = {
            Match.MATCHED: f"{target} AND {source}",
            Match.NOT_MATCHED: f"NOT ({target})",
            Match.BY_SOURCE: f"NOT ({source})",
        }
        branches = [
            f"WHEN {sides[clause.match]}{'' if clause.condition is None else f' AND ({clause.condition})'} THEN {at}"
            for at, clause in enumerate(statement.clauses)
        ]
        if any(clause.match is Match.MATCHED for clause in statement.clauses):  # pairs without a clause count, too
            branches.append(f"WHEN {sides[Match.MATCHED]} THEN {NO_CLAUSE}")
        return f"CASE {' '.join(branches)} END"

    def _clauses(self, snapshot: Snapshot, source: DataFrame) -> list[tuple[MergeClause, dict[str, str]]]:
        """The clauses, each with the SQL text of the columns that it sets."""
        return [(clause, self._assigned(clause, snapshot, source)) for clause in self.statement.clauses]

    def _assigned(self, clause: MergeClause, snapshot: Snapshot, source: DataFrame) -> dict[str, str]:
        what = f"MERGE … {clause.match.value} THEN {clause.action.value}"
        if clause.action is Action.DELETE:
            return {}
        if clause.assigned is not None:
            return assigned_columns(clause.assigned, self.table, what=what)
        columns = [name for name in source.columns if name not in META_FIELDS and name != _SOURCE]
        given = {name.lower(): name for name in columns}
        for name in set(snapshot.schema.names) & set(columns):  # another may differ by its case only
            given[name.lower()] = name
        starred = [name for name in snapshot.schema.names if name.lower() in given]
        if not starred:
            raise Invalid(
                f"{what} *: expected columns of table '{self.table.name}' in the source, found {', '.join(given)}"
            )
        alias = quoted_name(self.statement.source_alias)
        return assigned_columns(
            [Assigned((name,), f"{alias}.{quoted_name(given[name.lower()])}") for name in starred],
            self.table,
            what=what,
        )

    def _values(self, clause: MergeClause, assigned: Mapping[str, str], snapshot: Snapshot) -> ClauseValues:
        if clause.action is Action.INSERT:
            config = snapshot.config
            for name in (*config.record_key, *config.compared_by):
                if name not in assigned:
                    raise Invalid(
                        f"MERGE … NOT MATCHED THEN INSERT: expected a value for column '{name}' of table "
                        f"'{config.name}', which says which row it is or which one wins, found none"
                    )
        return ClauseValues(
            what=f"MERGE … {clause.match.value} THEN {clause.action.value}",
            values=assigned,
            is_insert=clause.action is Action.INSERT,
            is_delete=clause.action is Action.DELETE,
            is_matched=clause.match is Match.MATCHED,
        )

    def _shape(self, snapshot: Snapshot, settings: WriteSettings) -> MergeShape:
        config, matched = snapshot.config, [c for c in self.statement.clauses if c.match is Match.MATCHED]
        deletes_all = len(matched) == 1 and matched[0].action is Action.DELETE and matched[0].condition is None
        is_event_time = config.merge_mode is MergeMode.EVENT_TIME and bool(config.ordering)
        partition_by = () if settings.has_global_index else tuple(config.partition_by)
        return MergeShape(
            table_name=config.name,
            alias=self.statement.alias,
            columns=tuple(table_columns(snapshot.schema, [])),
            stays=staying_columns(config, moves=settings.moves_rows),
            record_key=config.record_key,
            named_by=tuple(dict.fromkeys((*(config.record_key or (RECORD_KEY,)), *partition_by))),
            made_keys=None if config.record_key else f"{random_uuid()}",
            leaves=LEAVES_COLUMN,
            path=STORED_PATH_COLUMN if stores_paths(snapshot) else "",
            partition_by=tuple(config.partition_by),
            texts_in_paths=_texts_in_paths(snapshot, settings) if partition_by else {},
            allows_several_matches=deletes_all,
            settles_new_rows=is_event_time and self.settles,
            not_less=tuple(config.ordering) if is_event_time and not self.settles else (),
        )

    def _must_look_up(
        self, clauses: Sequence[tuple[MergeClause, Mapping[str, str]]], snapshot: Snapshot, source: DataFrame,
        shape: MergeShape, *, is_global: bool,
    ) -> bool:  # fmt: skip
        """Whether a row of the source that matched nothing may have the record key of a stored row.

        It cannot where rows match if their keys are equal, or their keys and partitions, and nothing else is asked for.
        The types must be the same: 1.4 equals no INT, and is stored as 1. A null equals nothing, and rows of one
        partition may have it, or an empty text. Many times may share a partition.
        """
        config, statement = snapshot.config, self.statement
        inserts = [assigned for clause, assigned in clauses if clause.action is Action.INSERT]
        if not inserts or not config.record_key:
            return False
        equal = equal_columns(statement.on, statement.alias, statement.source_alias)
        if equal is None or snapshot.key_spec.own_generator:
            return True
        allowed = {*config.record_key, *(() if is_global else config.partition_by)}
        if not set(config.record_key) <= set(equal) <= allowed or not set(equal).isdisjoint(shape.texts_in_paths):
            return True
        types = {field.name: field.dataType for field in table_columns(snapshot.schema, [])}
        given = {field.name.lower(): field for field in source.schema.fields}
        if len(given) < len(source.columns):  # some differ by their case only: which of them is meant is not told here
            return True
        if any(other not in given or given[other].dataType != types[name] for name, other in equal.items()):
            return True
        if has_gaps(source, [given[other].name for name, other in equal.items() if name in config.partition_by]):
            return True
        alias = statement.source_alias.lower()
        return any(_plain(assigned[name], alias) != equal[name] for assigned in inserts for name in config.record_key)


def _texts_in_paths(snapshot: Snapshot, settings: WriteSettings) -> dict[str, Column]:
    """The texts that paths have for the partition columns of which many values share one."""
    spec = settings.keys.spec(with_path_times(snapshot.key_spec, snapshot), snapshot.config)
    shared = [*spec.time_based, *spec.sql_times, *(spec.partition_by if spec.has_logical_timestamps else ())]
    return {name: partition_text(name, snapshot.schema, spec) for name in shared}


def _plain(text: str, alias: str) -> str:
    """The column that an expression is, in small letters, without the source's alias; empty for any other."""
    parts = text.replace("`", "").lower().split(".")
    return parts[-1].strip() if len(parts) == 1 or parts[-2].strip() == alias else ""
