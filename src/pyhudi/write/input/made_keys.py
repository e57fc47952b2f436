"""Tables whose record keys the writer makes up. Their rows are found again by the meta fields that a query gave."""

from collections.abc import Collection
from dataclasses import replace

from pyhudi.errors import Invalid
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.table.facts.config import TableConfig
from pyhudi.write.input.source import Operation
from pyhudi.write.settings import WriteSettings


def finds_made_keys(config: TableConfig, operation: Operation) -> bool:
    """Whether an operation finds rows of a table without key columns by the key in their meta field."""
    return not config.record_key and operation.is_tagged


def by_meta_field(keys: KeySpec) -> KeySpec:
    """Keys that are taken as they are stored, and not spelled from columns."""
    return replace(keys, record_key=(RECORD_KEY,), is_composite=False)


def refuse_without_keys(
    config: TableConfig, operation: Operation, settings: WriteSettings, columns: Collection[str]
) -> None:
    """Refuse what needs a record key on a table without one. `columns`: of the input.

    Seen: 1.0.2 and 1.2.0 upsert and delete rows of a query, which have the meta fields. Other rows 1.0.2 adds anew on
    an upsert, and fails on a delete. It refuses to combine rows and to drop duplicates. Raises: Invalid.
    """
    if config.record_key:
        return

    if finds_made_keys(config, operation):
        if RECORD_KEY not in columns:
            raise Invalid(
                f"{operation.value.lower()} in table '{config.name}': expected rows of a query of this table, with "
                f"their column '{RECORD_KEY}', found none; keys are made up by the writer, and no other column tells "
                "which row is meant; use insert or bulk_insert for new rows"
            )
        return

    if settings.combine_before_insert or settings.insert_duplicates != "none":
        raise Invalid(
            f"table '{config.name}': hoodie.combine.before.insert and dropping duplicates on insert expect record key "
            "columns, found keys that the writer makes up; leave these options out"
        )
