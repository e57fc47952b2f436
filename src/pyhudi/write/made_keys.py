"""Writing to tables whose record keys the writer makes up: rows are added, and cannot be found again."""

from pyhudi.errors import Invalid
from pyhudi.table.config import TableConfig
from pyhudi.write.settings import WriteSettings
from pyhudi.write.source import Operation


def refuse_without_keys(config: TableConfig, operation: Operation, settings: WriteSettings) -> None:
    """Refuse what takes a record key on a table without one.

    Seen: 1.0.2 takes an upsert, but adds each row anew, refuses to combine rows and to drop duplicates, and fails on
    a delete. Raises: Invalid.
    """
    if config.record_key:
        return
    if operation.is_tagged:
        raise Invalid(
            f"{operation.value.lower()} in table '{config.name}': expected a table with record key columns, found keys "
            "that the writer makes up, by which no row of an input is found; use insert or bulk_insert"
        )
    if settings.combine_before_insert or settings.insert_duplicates != "none":
        raise Invalid(
            f"table '{config.name}': hoodie.combine.before.insert and dropping duplicates on insert expect record key "
            "columns, found keys that the writer makes up; leave these options out"
        )
