"""What a commit states of the table's columns, and how it reads files of the time before it.

On a table whose columns have numbers, a commit states the schema by which its files are read: that of its requested
time. So a write that brings new columns gives them numbers, and a service that was planned before the columns changed
writes its files as they were planned. Spec: format/layout.md section 8.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyhudi.errors import NotFound, Unsupported
from pyhudi.format.schema.conversion import (
    leave_out_fields,
    record_name,
    with_meta_fields,
    without_meta_fields,
)
from pyhudi.format.schema.differences import column_paths
from pyhudi.format.schema.history import SchemaHistory
from pyhudi.format.schema.history_text import schema_json
from pyhudi.format.schema.numbering import avro_of, first_numbers, grown
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.view.commits import SCHEMA
from pyhudi.table.view.schema_on_read import LATEST_SCHEMA
from pyhudi.table.view.snapshot import Snapshot

UNREQUESTED: Final = "9" * 17
"""Stands for the instant of a write that has none yet."""


@dataclass(frozen=True, slots=True)
class StatedColumns:
    """The columns by which an action writes.

    `text`: the Avro schema without meta fields. `history`: the schemas of the table, that of the action first; None for
    a table whose columns have no numbers. `left_out`: columns that files lack; commits do not state them.
    """

    text: str
    history: SchemaHistory | None = None
    left_out: tuple[str, ...] = ()

    @property
    def evolution(self) -> Evolution | None:
        """How files are read whose columns had other names. None if no column ever had another name."""
        return None if self.history is None else Evolution.of(self.history)

    @property
    def extra_metadata(self) -> Mapping[str, str]:
        """What the action's commit states. Seen: with numbers, the meta fields are among the columns."""
        if self.history is None:
            return {SCHEMA: leave_out_fields(self.text, self.left_out)}
        return {SCHEMA: with_meta_fields(self.text), LATEST_SCHEMA: schema_json(self.history.schemas[0])}


def columns_of_write(snapshot: Snapshot, text: str, requested: str) -> StatedColumns:
    """The columns of a write at `requested` that brings the schema `text`.

    A write that takes columns out of the table begins a history of columns, where there is none: otherwise older files
    would show the values of a dropped column in a later one of its name.
    Raises: Unsupported for a column that has no place in the history.
    """
    history, left_out = snapshot.history, snapshot.config.left_out
    if history is None and _loses_columns(snapshot.schema_text, text):
        assert snapshot.schema_text is not None
        history = SchemaHistory((first_numbers(snapshot.schema_text),))
    _refuse_numbers(snapshot, history)
    return StatedColumns(text, None if history is None else grown(history, text, requested), left_out)


def _refuse_numbers(snapshot: Snapshot, history: SchemaHistory | None) -> None:
    """Raises: Unsupported for numbered columns on a table that leaves columns out: they have no numbers."""
    if history is not None and snapshot.config.left_out:
        raise Unsupported(
            f"{snapshot.storage.location.uri}: hoodie.datasource.write.drop.partition.columns='true' on a table whose "
            "columns were renamed, dropped or moved: this release reads such a table; write with Apache Hudi"
        )


def _loses_columns(before: str | None, after: str) -> bool:
    return before is not None and before != after and bool(column_paths(before) - column_paths(after))


def columns_of_service(snapshot: Snapshot, requested: str) -> StatedColumns:
    """The columns by which a service writes that was planned at `requested`.

    Raises: NotFound for a table without a schema.
    """
    text, history = snapshot.schema_text, snapshot.history
    if text is None:
        uri = snapshot.storage.location.uri
        raise NotFound(f"{uri}: expected a schema to write rows in, found a table without one")
    _refuse_numbers(snapshot, history)
    if history is None:
        return StatedColumns(text, left_out=snapshot.config.left_out)

    then = history.of(requested)
    if then is not history.schemas[0]:
        older = history.schemas[history.schemas.index(then) :]
        return StatedColumns(
            without_meta_fields(avro_of(then, record_name(snapshot.config.name))), SchemaHistory(older)
        )
    return StatedColumns(text, history)


def stated_by_service(now: Snapshot, columns: StatedColumns) -> Mapping[str, str]:
    """What the commit of a service states, which wrote by `columns`. `now`: the table when the service completes.

    Where columns have no numbers, that is the newest schema: a write may have changed it since the service began.
    """
    if columns.history is not None or now.schema_text is None:
        return columns.extra_metadata
    if now.history is not None:  # columns got numbers while the service ran
        return columns_of_service(now, "0").extra_metadata
    return StatedColumns(now.schema_text, left_out=now.config.left_out).extra_metadata
