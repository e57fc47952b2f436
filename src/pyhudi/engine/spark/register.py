"""Wrapping PySpark's readers and writers, so that `load` and `save` of the format `hudi` run pyhudi's Python code."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.classes import SparkClasses, frame_of, session_behind
from pyhudi.engine.spark.format_name import is_hudi
from pyhudi.errors import Invalid
from pyhudi.table.facts.key_properties import bare_name

_STATE = "_pyhudi_state"
_MARK = "_pyhudi_wrapped"

_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
_LAYOUTS = {
    "bucketBy": "; buckets of a table are the option hoodie.index.type=BUCKET",
    "sortBy": "; the order of a bulk_insert is the option hoodie.bulkinsert.sort.mode",
    "clusterBy": "",
}
"""Calls of a writer that say how files lie, and what says it of a Hudi table."""

Load = Callable[[SparkSession, str, Mapping[str, object]], DataFrame]
Save = Callable[[DataFrame, str, str, Mapping[str, object]], None]
Refuse = Callable[[SparkSession, str, str], None]
"""Refuses a folder that Spark's own formats must not write to. The second text says which call it was."""

_OF_FILES = ("parquet", "orc", "json", "csv", "text", "xml")
"""Calls of a writer that write files of this format to a path."""


def wrap_readers_and_writers(classes: SparkClasses, *, load: Load, save: Save, refuse: Refuse) -> None:
    """Wrap the reader and writer classes of the session's kind, classic or Connect, once per process.

    `refuse`: asked before rows are written to a path in another format.
    """
    for kind in (classes.reader, classes.writer):
        if kind.__dict__.get(_MARK):
            continue

        note_calls(kind)
        if kind is classes.reader:
            _end_load(kind, load)
        else:
            _end_save(kind, save, refuse)
            for name in _OF_FILES:
                if name in kind.__dict__:
                    _guard(kind, name, refuse)
        setattr(kind, _MARK, True)


def writer_state(builder: Any) -> dict[str, Any]:
    """The format, options, mode and partition columns that one reader or writer was given so far."""
    return builder.__dict__.setdefault(_STATE, {"format": None, "options": {}, "mode": None, "partition_by": ()})


def note_calls(kind: type) -> None:
    """Let readers or writers of a class keep what they are told (`writer_state`)."""

    def note_format(state: dict[str, Any], source: str) -> None:
        state["format"] = source

    def note_option(state: dict[str, Any], key: str, value: object) -> None:
        state["options"][key] = value

    def note_options(state: dict[str, Any], **options: object) -> None:
        state["options"].update(options)

    def note_mode(state: dict[str, Any], saveMode: str | None) -> None:  # noqa: N803  # PySpark's own name
        state["mode"] = saveMode

    def note_schema(state: dict[str, Any], schema: object) -> None:
        state["schema"] = schema

    def note_partitions(state: dict[str, Any], *columns: Any) -> None:
        names = columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
        state["partition_by"] = tuple(names)

    def note_layout(name: str) -> Callable[..., None]:
        def note(state: dict[str, Any], *args: object, **kwargs: object) -> None:
            state[name] = True

        return note

    notes: dict[str, Callable[..., None]] = {
        **_notes_of_streams(),
        **{name: note_layout(name) for name in _LAYOUTS},
        "format": note_format,
        "option": note_option,
        "options": note_options,
        "mode": note_mode,
        "schema": note_schema,
        "partitionBy": note_partitions,
    }
    for name, note in notes.items():
        if name in kind.__dict__:
            setattr(kind, name, _noting(kind.__dict__[name], note))


def _notes_of_streams() -> dict[str, Callable[..., None]]:
    def note_output_mode(state: dict[str, Any], outputMode: str) -> None:  # noqa: N803
        state["output_mode"] = outputMode

    def note_query_name(state: dict[str, Any], queryName: str) -> None:  # noqa: N803
        state["query_name"] = queryName

    def note_trigger(state: dict[str, Any], **trigger: object) -> None:
        state["trigger"] = {name: value for name, value in trigger.items() if value is not None}

    def note_own_code(state: dict[str, Any], *args: object, **kwargs: object) -> None:
        state["format"] = None  # to Spark, what is named last is where the rows go

    own_code = {"foreach": note_own_code, "foreachBatch": note_own_code}
    return {"outputMode": note_output_mode, "queryName": note_query_name, "trigger": note_trigger, **own_code}


def _noting(original: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        note(writer_state(self), *args, **kwargs)
        return original(self, *args, **kwargs)

    return call


def _end_load(kind: type, load: Load) -> None:
    original = kind.__dict__["load"]

    @functools.wraps(original)
    def call(self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: object) -> Any:
        state = writer_state(self)
        if not is_hudi(format or state["format"]):
            return original(self, path, format, schema, **options)

        given = {**state["options"], **options}
        if schema is not None or state.get("schema") is not None:
            raise Invalid("schema: a Hudi table knows its own; select or cast columns after load")
        return load(session_behind(self), one_path(path, given), {k: v for k, v in given.items() if k != "path"})

    kind.load = call  # type: ignore[attr-defined]


def _end_save(kind: type, save: Save, refuse: Refuse) -> None:
    original = kind.__dict__["save"]

    @functools.wraps(original)
    def call(
        self: Any,
        path: Any = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's own name
        **options: object,
    ) -> Any:
        state = writer_state(self)
        given = {**state["options"], **options}
        if not is_hudi(format or state["format"]):
            refuse_path(refuse, session_behind(self), given if path is None else {"path": path}, "save")
            return original(self, path, format, mode, partitionBy, **options)

        refuse_layout(state)
        add_partitions(given, partitionBy or state["partition_by"])
        target = one_path(path, given)
        save(
            frame_of(self),
            target,
            mode or state["mode"] or "error",
            {k: v for k, v in given.items() if k != "path"},
        )

    kind.save = call  # type: ignore[attr-defined]


def _guard(kind: type, name: str, refuse: Refuse) -> None:
    original = kind.__dict__[name]

    @functools.wraps(original)
    def call(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        refuse(session_behind(self), path, f"{name}('{path}')")
        return original(self, path, *args, **kwargs)

    setattr(kind, name, call)


def refuse_path(refuse: Refuse, spark: SparkSession, options: Mapping[str, object], call: str) -> None:
    """Ask about the folder of a call that writes in another format: its option `path`, in which capitals do not count.

    Raises: Unsupported for a Hudi table's.
    """
    for name, value in options.items():
        if name.lower() == "path" and isinstance(value, str):
            refuse(spark, value, f"{call} to '{value}'")


def add_partitions(options: dict[str, object], columns: Any) -> None:
    """What `partitionBy` said, as an option. Raises: Invalid where options say otherwise."""
    names = [columns] if isinstance(columns, str) else list(columns)
    stated = [bare_name(name.strip()) for name in str(options.get(_PARTITION_FIELDS, "")).split(",") if name.strip()]
    if names and stated and names != stated:
        raise Invalid(
            f"partitionBy({', '.join(names)}): expected the columns of {_PARTITION_FIELDS}, found "
            f"'{options[_PARTITION_FIELDS]}' there; leave one of them out"
        )
    if names and not stated:
        options[_PARTITION_FIELDS] = ",".join(names)


def refuse_layout(state: dict[str, Any]) -> None:
    for name in _LAYOUTS:
        if state.get(name):
            raise Invalid(f"{name}: means nothing to a Hudi table; leave it out{_LAYOUTS[name]}")


def one_path(path: Any, options: Mapping[str, object]) -> str:
    found = path if path is not None else options.get("path")
    if isinstance(found, list | tuple) and len(found) == 1:
        found = found[0]
    if not isinstance(found, str) or not found:
        raise Invalid(f"path={found!r}: expected the path of one table")
    return found
