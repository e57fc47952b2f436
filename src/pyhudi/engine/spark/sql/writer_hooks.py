"""Wrapping PySpark's calls that write to a table by its name: those about Hudi tables end in pyhudi."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.engine.spark.classes import SparkClasses, frame_of, is_of_connect, session_behind
from pyhudi.engine.spark.register import Refuse, refuse_path

_MARK = "_pyhudi_by_name"
_STATE = "_pyhudi_table"


@dataclass
class StatedTable:
    """What a writer was told about its table. `source`: its format, None where none was said."""

    name: str
    source: str | None = None
    mode: str | None = None
    options: dict[str, object] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()


class TableWrites(Protocol):
    """Writes to a table by its name. Each returns False where the table is none of Hudi, and nothing was done."""

    def save(self, rows: DataFrame, table: StatedTable) -> bool:
        """`saveAsTable`."""

    def insert(self, rows: DataFrame, table: StatedTable, overwrites: bool) -> bool:
        """`insertInto`."""

    def create(
        self, session: SparkSession, table: StatedTable, columns: StructType | None, comment: str | None
    ) -> bool:
        """`catalog.createTable`."""

    def write_to(self, rows: DataFrame, table: StatedTable, action: str, condition: Any) -> bool:
        """`writeTo`. `action`: the name of the call that ends it."""

    def merge(self, rows: DataFrame, name: str, condition: Any) -> Any:
        """`mergeInto`: what takes the clauses; None where the table is none of Hudi."""


def wrap_table_writers(
    classes: SparkClasses, writes: TableWrites, state_of: Callable[[Any], Mapping[str, Any]], refuse: Refuse
) -> None:
    """Wrap the classes of a kind once per process. `state_of`: what a `DataFrameWriter` was given so far.

    `refuse`: asked about the folder of a table in another format.
    """
    if classes.writer.__dict__.get(_MARK):
        return
    _wrap_save(classes.writer, writes, state_of, refuse)
    _wrap_insert(classes.writer, writes, state_of)
    for name in ("createTable", "createExternalTable"):
        _wrap_creation(classes.catalog, name, writes, refuse)
    _note_calls(classes.writer_of_tables)
    for action in ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"):
        _wrap_action(classes.writer_of_tables, action, writes, refuse)
    if hasattr(classes.frame, "mergeInto"):  # from PySpark 4 on
        _wrap_merge(classes.frame, writes)
    setattr(classes.writer, _MARK, True)


def _wrap_save(kind: Any, writes: TableWrites, state_of: Callable[[Any], Mapping[str, Any]], refuse: Refuse) -> None:
    original = kind.__dict__["saveAsTable"]

    @functools.wraps(original)
    def call(
        self: Any,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's own name
        **options: object,
    ) -> None:
        state = state_of(self)
        said = [partitionBy] if isinstance(partitionBy, str) else partitionBy
        table = StatedTable(
            name,
            format or state["format"],
            mode or state["mode"],
            {**state["options"], **options},
            partition_by=tuple(said or state["partition_by"]),
        )
        if not writes.save(frame_of(self), table):
            refuse_path(refuse, session_behind(self), table.options, f"saveAsTable('{name}')")
            original(self, name, format, mode, partitionBy, **options)

    kind.saveAsTable = call


def _wrap_insert(kind: Any, writes: TableWrites, state_of: Callable[[Any], Mapping[str, Any]]) -> None:
    original = kind.__dict__["insertInto"]

    @functools.wraps(original)
    def call(self: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
        state = state_of(self)
        overwrites = overwrite if overwrite is not None else (state["mode"] or "").lower() == "overwrite"
        table = StatedTable(tableName, state["format"], state["mode"], dict(state["options"]))
        if not writes.insert(frame_of(self), table, overwrites):
            original(self, tableName, overwrite)

    kind.insertInto = call


def _wrap_creation(kind: Any, name: str, writes: TableWrites, refuse: Refuse) -> None:
    original = kind.__dict__[name]

    @functools.wraps(original)
    def call(
        self: Any,
        tableName: str,  # noqa: N803  # PySpark's own name
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        description: str | None = None,
        **options: Any,
    ) -> DataFrame:
        stated = {key: value for key, value in (*options.items(), ("path", path)) if value is not None}
        table = StatedTable(tableName, source, options=stated)
        session: SparkSession = self._sparkSession
        if writes.create(session, table, schema, description):
            return session.table(tableName)
        refuse_path(refuse, session, stated, f"{name}('{tableName}')")
        more = {"description": description} if description is not None else {}
        found: DataFrame = original(self, tableName, path, source, schema, **more, **options)
        return found

    setattr(kind, name, call)


def _note_calls(kind: Any) -> None:
    """Let a `DataFrameWriterV2` keep what it is told."""

    def note(name: str, keep: Callable[..., None]) -> None:
        original = kind.__dict__[name]

        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            keep(self, *args, **kwargs)
            return original(self, *args, **kwargs)

        setattr(kind, name, call)

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        setattr(self, _STATE, StatedTable(given["table"]))

    signature = inspect.signature(kind.__init__)

    def using(self: Any, provider: str) -> None:
        _stated(self).source = provider

    def option(self: Any, key: str, value: object) -> None:
        _stated(self).options[key] = value

    def options(self: Any, **options: object) -> None:
        _stated(self).options.update(options)

    def table_property(self: Any, property: str, value: str) -> None:
        _stated(self).properties[property] = value

    def partitioned_by(self: Any, col: Any, *cols: Any) -> None:
        _stated(self).partition_by = tuple(_column_name(one) for one in (col, *cols))

    note("__init__", begin)
    note("using", using)
    note("option", option)
    note("options", options)
    note("tableProperty", table_property)
    note("partitionedBy", partitioned_by)


def _column_name(column: Any) -> str:
    """The name of a column, as Spark writes it."""
    if isinstance(column, str):
        return column
    return str(column._expr) if is_of_connect(type(column)) else str(column._jc.toString())


def _wrap_action(kind: Any, action: str, writes: TableWrites, refuse: Refuse) -> None:
    original = kind.__dict__[action]

    @functools.wraps(original)
    def call(self: Any, *args: Any) -> None:
        condition = args[0] if args else None
        rows, table = frame_of(self), _stated(self)
        if not writes.write_to(rows, table, action, condition):
            refuse_path(refuse, rows.sparkSession, table.options, f"writeTo('{table.name}').{action}()")
            original(self, *args)

    setattr(kind, action, call)


def _wrap_merge(kind: Any, writes: TableWrites) -> None:
    original = kind.__dict__["mergeInto"]

    @functools.wraps(original)
    def call(self: Any, table: str, condition: Any) -> Any:
        made = writes.merge(self, table, condition)
        return original(self, table, condition) if made is None else made

    kind.mergeInto = call


def _stated(writer: Any) -> StatedTable:
    found = getattr(writer, _STATE)
    assert isinstance(found, StatedTable)
    return found
