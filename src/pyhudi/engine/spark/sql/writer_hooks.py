"""Wrapping PySpark's calls that write to a table by its name: those about Hudi tables end in pyhudi. Classic only."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.readwriter import DataFrameWriterV2
from pyspark.sql.types import StructType

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


def wrap_table_writers(writes: TableWrites, state_of: Callable[[Any], Mapping[str, Any]]) -> None:
    """Wrap the classes once per process. `state_of`: what a `DataFrameWriter` was given so far."""
    if DataFrameWriter.__dict__.get(_MARK):
        return
    _wrap_save(writes, state_of)
    _wrap_insert(writes, state_of)
    _wrap_creation(writes)
    _note_calls()
    for action in ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"):
        _wrap_action(action, writes)
    setattr(DataFrameWriter, _MARK, True)


def _wrap_save(writes: TableWrites, state_of: Callable[[Any], Mapping[str, Any]]) -> None:
    original = DataFrameWriter.__dict__["saveAsTable"]

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
        if not writes.save(self._df, table):
            original(self, name, format, mode, partitionBy, **options)

    DataFrameWriter.saveAsTable = call  # type: ignore[method-assign]


def _wrap_insert(writes: TableWrites, state_of: Callable[[Any], Mapping[str, Any]]) -> None:
    original = DataFrameWriter.__dict__["insertInto"]

    @functools.wraps(original)
    def call(self: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
        state = state_of(self)
        overwrites = overwrite if overwrite is not None else (state["mode"] or "").lower() == "overwrite"
        table = StatedTable(tableName, state["format"], state["mode"], dict(state["options"]))
        if not writes.insert(self._df, table, overwrites):
            original(self, tableName, overwrite)

    DataFrameWriter.insertInto = call  # type: ignore[method-assign]


def _wrap_creation(writes: TableWrites) -> None:
    for name in ("createTable", "createExternalTable"):
        _wrap_one_creation(name, writes)


def _wrap_one_creation(name: str, writes: TableWrites) -> None:
    original = Catalog.__dict__[name]

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
        more = {"description": description} if description is not None else {}
        found: DataFrame = original(self, tableName, path, source, schema, **more, **options)
        return found

    setattr(Catalog, name, call)


def _note_calls() -> None:
    """Let a `DataFrameWriterV2` keep what it is told."""

    def note(name: str, keep: Callable[..., None]) -> None:
        original = DataFrameWriterV2.__dict__[name]

        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            keep(self, *args, **kwargs)
            return original(self, *args, **kwargs)

        setattr(DataFrameWriterV2, name, call)

    def begin(self: Any, df: DataFrame, table: str) -> None:
        setattr(self, _STATE, StatedTable(table))

    def using(self: Any, provider: str) -> None:
        _stated(self).source = provider

    def option(self: Any, key: str, value: object) -> None:
        _stated(self).options[key] = value

    def options(self: Any, **options: object) -> None:
        _stated(self).options.update(options)

    def table_property(self: Any, property: str, value: str) -> None:
        _stated(self).properties[property] = value

    def partitioned_by(self: Any, col: Any, *cols: Any) -> None:
        names = (one if isinstance(one, str) else one._jc.toString() for one in (col, *cols))
        _stated(self).partition_by = tuple(names)

    note("__init__", begin)
    note("using", using)
    note("option", option)
    note("options", options)
    note("tableProperty", table_property)
    note("partitionedBy", partitioned_by)


def _wrap_action(action: str, writes: TableWrites) -> None:
    original = DataFrameWriterV2.__dict__[action]

    @functools.wraps(original)
    def call(self: Any, *args: Any) -> None:
        condition = args[0] if args else None
        if not writes.write_to(self._df, _stated(self), action, condition):
            original(self, *args)

    setattr(DataFrameWriterV2, action, call)


def _stated(writer: Any) -> StatedTable:
    found = getattr(writer, _STATE)
    assert isinstance(found, StatedTable)
    return found
