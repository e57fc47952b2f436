"""Checking a write's input against the table and counting it, before the write begins."""

from dataclasses import replace

import pyarrow as pa

from pyhudi.errors import Conflict, Invalid
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.log.kryo_writing import refuse_java_ordering
from pyhudi.format.schema.arrow_types import refuse_deep_types
from pyhudi.format.schema.conversion import (
    RECORD_KEY,
    arrow_from_avro,
    avro_from_arrow,
    record_name,
    required_columns,
)
from pyhudi.format.schema.differences import describe_changes, undone_changes
from pyhudi.format.struct_fields import column_around, with_fields
from pyhudi.options.told_names import listed
from pyhudi.table.facts.bucket_facts import facts_of_table
from pyhudi.table.facts.config import KeyKind, TableConfig
from pyhudi.table.read.plan import table_rules
from pyhudi.table.read.stored_keys import stored_key_spec
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import LogContent
from pyhudi.write.input.file_limits import refuse_unfit_for_hfile, refuse_unfit_for_lance
from pyhudi.write.input.inserts import refuse_unchecked, row_order
from pyhudi.write.input.key_settings import refuse_unplaceable
from pyhudi.write.input.left_out import with_path_texts
from pyhudi.write.input.lost_digits import tell_of_lost_digits
from pyhudi.write.input.made_keys import by_meta_field, finds_made_keys, refuse_without_keys
from pyhudi.write.input.pinned_columns import refuse_dropping
from pyhudi.write.input.schema import (
    TableColumns,
    carries_some_columns,
    columns_for_delete,
    evolved_schema,
    first_schema,
    refuse_unordered_types,
    refuse_unread_mark,
    refuse_unreadable_parts,
)
from pyhudi.write.input.source import LEAVES, STORED_PATH, InputSpec, Operation, PreparedWrite, WriteSource
from pyhudi.write.input.tagging import keys_for, refuse_moving_parts, refuse_unfit_index, settles_partitions
from pyhudi.write.place.buckets import refuse_unfit_for_buckets
from pyhudi.write.place.non_blocking import refuse_unfit_for_non_blocking
from pyhudi.write.settings import WriteSettings
from pyhudi.write.stated_schema import UNREQUESTED, columns_of_write


def prepare_write(
    snapshot: Snapshot,
    source: WriteSource,
    operation: Operation,
    settings: WriteSettings,
    *,
    is_unordered: bool = False,
    marks_deletes: bool = False,
) -> PreparedWrite:
    """Check the input against the table and count it. Raises: Invalid, before the first byte is written.

    `is_unordered`: a delete whose rows win over what is stored, whatever their ordering values. `marks_deletes`: an
    upsert whose column `LEAVES` tells the rows whose keys are deleted. An input may have the column `STORED_PATH`.
    """
    config = snapshot.config
    incoming = source.schema
    if marks_deletes:
        incoming = incoming.remove(incoming.get_field_index(LEAVES))
    keeps_paths = STORED_PATH in incoming.names
    if keeps_paths:
        incoming = incoming.remove(incoming.get_field_index(STORED_PATH))
    refuse_deep_types(incoming)
    refuse_unread_mark(incoming)
    incoming = with_path_texts(incoming, snapshot)
    refuse_unchecked(operation, settings, table_name=config.name)
    buckets = facts_of_table(config, settings.bucket_options)
    refuse_unfit_index(config, settings, is_bucketed=buckets is not None)
    refuse_without_keys(config, operation, settings, incoming.names)
    stored = stored_key_spec(snapshot, names_column=settings.keys.names_column)
    keys = keys_for(operation, settings.keys.spec(stored, config), settings)
    schema, text, is_partial = _checked_columns(snapshot, incoming, operation, keys, settings, is_unordered)
    if operation is not Operation.DELETE:
        # Fields of structs that rows are keyed, placed or ordered by travel as columns of their own. Files are written
        # without these, for the table has no such columns.
        schema = with_fields(schema, (*keys.columns, *config.ordering))
    refuse_unfit_for_non_blocking(config, buckets, operation, settings)
    if buckets is not None:
        refuse_unfit_for_buckets(operation, settings, table_name=config.name)
    if finds_made_keys(config, operation):
        keys, schema = by_meta_field(keys), schema.append(pa.field(RECORD_KEY, pa.string()))
    _refuse_missing_facts(config, keys, schema, operation)
    refuse_unfit_for_hfile(config, schema, keys)
    refuse_unfit_for_lance(config, schema)
    refuse_unplaceable(keys, schema, is_custom=config.key_kind is KeyKind.CUSTOM)
    if keeps_paths:
        keys, schema = replace(keys, path_column=STORED_PATH), schema.append(pa.field(STORED_PATH, pa.string()))
    if marks_deletes:
        schema = schema.append(pa.field(LEAVES, pa.bool_()))
    required = tuple(name for name in required_columns(text) if name in schema.names)
    order = row_order(operation, keys, settings)
    carried = _carried_ordering(config, operation, schema, is_unordered)
    compared = tuple(name for name in config.compared_by if name in carried) if operation.is_tagged else ()
    spec = InputSpec(schema, keys, compared, carried, required, order=order)
    if buckets is None and operation is Operation.UPSERT and keys.partition_by:
        refuse_moving_parts(table_rules(snapshot, schema), settings, table_name=config.name)
    settles = buckets is None and settles_partitions(operation, spec, settings)
    loses_arrival = order.is_by_key and settings.combine_before_insert
    counted = source.count(replace(spec, numbers_rows=settles or loses_arrival))
    return PreparedWrite(operation, spec, text, snapshot.schema_text, counted, is_partial, buckets)


def prepare_anew(
    outdated: PreparedWrite,
    snapshot: Snapshot,
    source: WriteSource,
    operation: Operation,
    settings: WriteSettings,
    *,
    is_unordered: bool = False,
) -> PreparedWrite:
    """As `prepare_write`, for an input that was prepared before another writer changed the table's schema.

    What the caller asked to be replaced beside the rows' partitions stays asked.

    Raises: Conflict if the input fits the new schema no more, or would add a column that the other writer dropped, or
    drop one that it added, with what both writers change.
    """
    theirs = describe_changes(outdated.schema_before, snapshot.schema_text) or "no column differs"
    mine = describe_changes(outdated.schema_before, outdated.schema_text) or "no change"
    meanwhile = f"table '{snapshot.config.name}': another writer changed the table's schema meanwhile ({theirs})"
    try:
        prepared = prepare_write(snapshot, source, operation, settings, is_unordered=is_unordered)
    except Invalid as error:
        raise Conflict(
            f"{meanwhile}, and the input of this write (which brings: {mine}) does not fit it: {error}"
        ) from error

    undone = undone_changes(outdated.schema_before, snapshot.schema_text, prepared.schema_text)
    if undone:
        raise Conflict(
            f"{meanwhile}, which this write (which brings: {mine}) would undo by column '{undone[0]}'; look at the "
            "table's columns, and write rows that fit them, or the same rows again"
        )
    return replace(prepared, also_replaced=outdated.also_replaced)


def _checked_columns(
    snapshot: Snapshot,
    incoming: pa.Schema,
    operation: Operation,
    keys: KeySpec,
    settings: WriteSettings,
    is_unordered: bool,
) -> tuple[pa.Schema, str, bool]:
    """The columns to carry, the table's schema from this write on, and whether rows hold some of its columns only."""
    config = snapshot.config
    text, is_partial = snapshot.schema_text, False

    if operation is Operation.DELETE:
        if text is None:
            raise Invalid(
                f"delete from table '{config.name}': expected rows to delete from, found a table without a schema"
            )
        schema = columns_for_delete(
            incoming,
            snapshot.schema,
            needed=keys.columns,
            ordering=() if is_unordered else config.ordering,
            table_name=config.name,
        )
    elif text is None:
        schema = first_schema(incoming)
        text = avro_from_arrow(schema, record_name=record_name(config.name))
        schema = arrow_from_avro(text)
    else:
        table = TableColumns(config.name, text, snapshot.schema, keys.columns, config.ordering)
        is_partial = (
            operation is Operation.UPSERT
            and config.is_merge_on_read
            and config.version.has_partial_blocks
            and carries_some_columns(incoming, table, settings)
        )
        text = evolved_schema(incoming, table, settings, is_partial=is_partial)
        if settings.drops_missing_columns:
            refuse_dropping(snapshot, text)
        columns_of_write(snapshot, text, UNREQUESTED)  # refuses columns that have no place in a history
        schema = arrow_from_avro(text)
        tell_of_lost_digits(snapshot.schema, schema, table_name=config.name)
        if is_partial:
            refuse_unreadable_parts(incoming, table, table_rules(snapshot, snapshot.schema))
            schema = pa.schema([field for field in schema if field.name in incoming.names])
    return schema, text, is_partial


def _carried_ordering(
    config: TableConfig, operation: Operation, schema: pa.Schema, is_unordered: bool
) -> tuple[str, ...]:
    """The ordering columns that rows carry. Of a delete some may be there as key or partition columns alone: a part of
    the values orders nothing."""
    carried = tuple(name for name in config.ordering if name in schema.names)
    is_whole = carried == tuple(config.ordering) and not is_unordered
    return carried if operation is not Operation.DELETE or is_whole else ()


def is_stale(prepared: PreparedWrite, snapshot: Snapshot) -> bool:
    """Whether the table's schema has changed since a write was prepared, to another one than the write brings itself.

    The input is then to be checked and counted anew. All else that a write goes by is read when it holds the table.
    """
    return snapshot.schema_text not in (prepared.schema_before, prepared.schema_text)


def _refuse_missing_facts(config: TableConfig, keys: KeySpec, schema: pa.Schema, operation: Operation) -> None:
    """The key, partition and ordering columns must be among the columns written."""
    ordering = () if operation is Operation.DELETE else config.ordering
    refuse_unordered_types(schema, config.ordering)
    if config.is_merge_on_read and config.version.log_content is LogContent.JAVA:
        types = [schema.field(name).type for name in config.ordering if name in schema.names]
        refuse_java_ordering(types, what=f"table '{config.name}'")
    for what, names in (
        ("record key", keys.record_key),
        ("partition", keys.partition_by),
        ("ordering", ordering),
    ):
        for name in names:
            if name not in schema.names:
                around = column_around(name)
                if around in schema.names:
                    raise Invalid(
                        f"table '{config.name}': {what} column '{name}' is the field of a struct: expected it within "
                        f"the column '{around}', found {schema.field(around).type}"
                    )
                raise Invalid(
                    f"table '{config.name}': {what} column '{name}' is missing from the input, which has "
                    f"{listed(schema.names)}"
                )
