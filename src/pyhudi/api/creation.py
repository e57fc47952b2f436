"""Making a table: the arguments checked and turned into its facts, then written."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pyhudi.api import frames
from pyhudi.api.commit_callback import refuse_stored_callback
from pyhudi.api.own_names import load_named
from pyhudi.errors import Invalid
from pyhudi.format.schema.conversion import avro_from_arrow, canonical_arrow, record_name, refuse_names_alike
from pyhudi.format.struct_fields import with_fields
from pyhudi.options.resolve import find_fact, merge_options
from pyhudi.options.table_facts import Fact
from pyhudi.options.told_names import listed
from pyhudi.services.stored_defaults import check_defaults
from pyhudi.table.facts.bucket_facts import new_bucket_counts
from pyhudi.table.facts.config import TableType, table_config
from pyhudi.table.facts.creation import NewTable, column_names, new_table_properties, write_new_table
from pyhudi.table.facts.key_properties import bare_name
from pyhudi.txn.action.session import TableAccess, refuse_unwritable
from pyhudi.write.input.key_settings import refuse_unwritable_keys
from pyhudi.write.input.left_out import as_path_texts
from pyhudi.write.input.schema import refuse_unordered_types, refuse_unread_mark


def make_table(
    access: TableAccess,
    name: str,
    record_key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None,
    ordering: str | Sequence[str] | None,
    schema: Any,
    table_type: str,
    table_version: int,
    properties: Mapping[str, object] | None,
) -> None:
    """Make a new table. Arguments and errors: as of `HudiTable.create`."""
    load_named(properties)
    given = merge_options(write=properties, opened=None, table={})
    refuse_stored_callback(given)

    keys = column_names(record_key, what="record_key")
    partitions = column_names(partition_by, what="partition_by", has_kinds=True)
    order = column_names(ordering, what="ordering")

    text, columns = None, None
    if schema is not None:
        columns = canonical_arrow(frames.arrow_schema(schema))
        refuse_names_alike(columns)
        refuse_unread_mark(columns)
        columns_and_fields = with_fields(columns, (*keys, *map(bare_name, partitions), *order))
        refuse_unordered_types(columns_and_fields, order)
        for what, names in (
            ("record_key", keys),
            ("partition_by", map(bare_name, partitions)),
            ("ordering", order),
        ):
            missing = [n for n in names if n not in columns_and_fields.names]
            if missing:
                raise Invalid(f"{what}: no column '{missing[0]}' in the schema, which has {listed(columns.names)}")
        if find_fact(given, Fact.DROPS_PARTITION_COLUMNS):
            columns = as_path_texts(columns, [*map(bare_name, partitions)], table_name=name)
        text = avro_from_arrow(columns, record_name=record_name(name))

    new = NewTable(
        name=name,
        record_key=keys,
        partition_by=partitions,
        ordering=order,
        table_type=table_type,
        table_version=table_version,
        create_schema=text,
        properties=given,
    )
    stored = new_table_properties(new)
    refuse_unwritable_keys(stored, columns)
    _refuse_never_written(stored, access.location.uri)
    counts = new_bucket_counts(given, record_key=keys, table_type=cast(TableType, table_type))
    write_new_table(access.storage, stored, epoch_ms=access.clock.now_ms(), counts=counts)


def _refuse_never_written(stored: Mapping[str, str], uri: str) -> None:
    """Refuse facts of a table, and options that it shall store, with which it could be read only.

    Example: a record index is made of stored record keys, which a table without meta fields has not.
    Raises: Unsupported, Invalid.
    """
    config = table_config(stored, path=uri)
    refuse_unwritable(config, uri)
    check_defaults(config, merge_options(write=None, opened=None, table=stored))
