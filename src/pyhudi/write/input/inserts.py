"""How new rows are taken in: the order in which they are stored, and what happens to keys that are stored already."""

from typing import assert_never

from pyhudi.errors import Invalid
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.options.entries import DELETE_PAYLOAD
from pyhudi.table.facts.config import TableConfig
from pyhudi.write.input.source import Operation, RowOrder, TaggedInput
from pyhudi.write.settings import WriteSettings

POLICY = "hoodie.datasource.insert.dup.policy"


def row_order(operation: Operation, keys: KeySpec, settings: WriteSettings) -> RowOrder:
    """How the rows of new file groups are ordered. Made-up keys number the rows as they arrive, so they are in order.

    The modes that repartition by path ask that a partition gets no more files than its rows fill. So do rows whose keys
    are looked up: most of them go to file groups that are there.
    """
    if operation.is_tagged:
        return RowOrder.TOGETHER
    if operation is not Operation.BULK_INSERT:
        return RowOrder.AS_ARRIVED
    match settings.bulk_insert_sort_mode:
        case "PARTITION_PATH_REPARTITION" | "PARTITION_PATH_REPARTITION_AND_SORT":
            return RowOrder.TOGETHER
        case _ if keys.makes_keys:
            return RowOrder.AS_ARRIVED
        case "GLOBAL_SORT":
            return RowOrder.BY_KEY_IN_PARTITION
        case "PARTITION_SORT":
            return RowOrder.BY_KEY_IN_GROUP
        case "NONE":
            return RowOrder.AS_ARRIVED
        case _:
            assert_never(settings.bulk_insert_sort_mode)


def combines_rows(operation: Operation, settings: WriteSettings) -> bool:
    """Whether an operation keeps only one row a key of its input."""
    match operation:
        case Operation.UPSERT:
            return settings.combine_before_upsert
        case Operation.DELETE:
            return settings.combine_before_delete
        case Operation.INSERT:
            return settings.combine_before_insert or settings.insert_duplicates == "drop"
        case _:
            return settings.combine_before_insert


def as_deletes(operation: Operation) -> Operation:
    """The operation that is carried out if its payload class makes all rows deletes. Raises: Invalid for an insert."""
    if operation not in (Operation.UPSERT, Operation.DELETE):
        raise Invalid(
            f"{operation.value.lower()}: expected an upsert or a delete with the payload class {DELETE_PAYLOAD}, whose "
            "rows are deletes: it would add none of them"
        )
    return Operation.DELETE


def updates_stored(operation: Operation, settings: WriteSettings, config: TableConfig) -> bool:
    """Whether an insert is an upsert, because rows whose key is stored are not to stand beside the stored ones."""
    asks = operation is Operation.INSERT and not settings.keeps_doubled_inserts
    return asks and settings.insert_duplicates == "none" and bool(config.record_key)


def refuse_unchecked(operation: Operation, settings: WriteSettings, *, table_name: str) -> None:
    """Refuse a bulk insert that must drop or refuse stored keys: it looks up no keys. Raises: Invalid."""
    if operation is Operation.BULK_INSERT and settings.insert_duplicates != "none":
        raise Invalid(
            f"bulk insert into table '{table_name}': expected '{POLICY}'='none', found '{settings.insert_duplicates}' "
            "by it or by its older spelling; a bulk insert looks no keys up: use insert"
        )


def refuse_stored_keys(tagged: TaggedInput, settings: WriteSettings, *, table_name: str) -> None:
    """Raises: Invalid for an insert that refuses stored keys, where tagging found some. Nothing is written then."""
    if settings.insert_duplicates != "fail":
        return
    count, example = tagged.stored_keys()
    if count:
        raise Invalid(
            f"insert into table '{table_name}': '{POLICY}'='fail': expected new record keys only, found {count:,} that "
            f"are stored already, such as '{example}'; leave them out, or use upsert"
        )
