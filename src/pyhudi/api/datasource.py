"""PySpark's `hudi` format over `HudiTable`: options to calls, with the names that Apache Hudi's users know."""

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pyhudi.api.clock import SYSTEM_CLOCK, random_uuid
from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid, NotFound
from pyhudi.format.instants import format_instant
from pyhudi.format.schema import RECORD_KEY
from pyhudi.model.options import find_fact, merge_options
from pyhudi.model.read_options import (
    DATA_SKIPPING,
    DATA_SKIPPING_FAILURE,
    METADATA,
    WHERE,
    read_request_from_options,
)
from pyhudi.model.table_facts import Fact, FactValue
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.table.bucket_facts import BUCKET_OPTIONS, INDEX_TYPE
from pyhudi.table.creation import NewTable, new_table_properties
from pyhudi.table.key_properties import PREFIX, SPELLED_ANEW
from pyhudi.txn.guard import open_guard
from pyhudi.write.key_settings import LOGICAL_TIMESTAMP, refuse_unwritable_keys
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPERATION = "hoodie.datasource.write.operation"
_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
_DELETES = ("delete", "delete_partition")
_OVERWRITES = ("insert_overwrite", "insert_overwrite_table")
_CALLS = ("upsert", "insert", "bulk_insert", *_DELETES, *_OVERWRITES)

_STORED = (
    "hoodie.database.name",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.record.merge.mode",
    LOGICAL_TIMESTAMP,
    *SPELLED_ANEW,
)
"""Facts of a table that are stored as they are written; the others have arguments of their own."""


def load_table(spark: "SparkSession", path: str, options: Mapping[str, object]) -> "DataFrame":
    """`spark.read.format("hudi").options(...).load(path)`.

    The option `pyhudi.where` is the scan's `where`: the rows that it keeps, pruned by the table's indexes, too.
    """
    given = {name: value for name, value in options.items() if name != WHERE}
    where = None if options.get(WHERE, "") in ("", None) else options[WHERE]
    request = read_request_from_options(given)
    skipping = {name: given[name] for name in (DATA_SKIPPING, DATA_SKIPPING_FAILURE) if name in given}
    table = HudiTable.open(path, options={METADATA: request.metadata_enabled, **skipping})
    if request.query_type == "incremental":
        return table.incremental(request.start, request.end, where=where).to_spark(spark)
    return table.scan(as_of=request.as_of, query=request.query_type, where=where).to_spark(spark)


def save_dataframe(dataframe: "DataFrame", path: str, mode: str, options: Mapping[str, object]) -> None:
    """`df.write.format("hudi").options(...).mode(...).save(path)`.

    `append` writes to the table, made if need be; `overwrite` makes it anew, but for the operations
    insert_overwrite and insert_overwrite_table, which replace rows of the table that is there; `ignore` and `error`
    as in Spark.
    """
    merged = merge_options(write=options, opened=None, table={})
    operation = _operation(merged)
    if operation in _DELETES and mode.lower() != "append":
        raise Invalid(f"mode '{mode}': expected 'append' with {_OPERATION}='{operation}', which deletes what is stored")
    exists = HudiTable.exists(path)
    if operation == "delete_partition" and not exists:
        raise NotFound(f"{path}: expected a table to delete partitions of, found none")
    match mode.lower():
        case "append":
            pass
        case "overwrite":
            if operation not in _OVERWRITES or not exists:
                _refuse_replacing_by(dataframe, path, merged)
                if exists:
                    _drop(path)
                    exists = False
        case "ignore":
            if exists:
                return
        case "error" | "errorifexists" | "default":
            if exists:
                raise Invalid(
                    f"{path}: a table is here already; write with mode('append'), or 'overwrite' to make it anew"
                )
        case _:
            raise Invalid(f"mode '{mode}': expected append, overwrite, ignore or errorifexists")
    table = HudiTable.open(path) if exists else _create(path, merged)
    if not merged.get(_OPERATION) and not table.record_key:
        # Seen: so does 1.0.2 where it makes keys up: rows of a query, with their keys, are changed, others are added.
        operation = "upsert" if RECORD_KEY in dataframe.columns else "bulk_insert"
    call_options = {k: v for k, v in merged.items() if k not in (_OPERATION, _TO_DELETE)}
    if operation == "delete_partition":
        named = merged.get(_TO_DELETE, "")
        table.delete_partitions(
            table.partitions_like(named.split(",")) if named else table.partitions_of(dataframe, options=call_options),
            options=call_options,
        )
        return
    getattr(table, operation)(dataframe, options=call_options)


def _operation(options: Mapping[str, str]) -> str:
    """The operation that options ask for.

    Seen: 1.0.2 takes an upsert for an insert where duplicates are to be dropped or refused, named or by default.
    """
    operation = options.get(_OPERATION, "").lower() or "upsert"
    if operation not in _CALLS:
        raise Invalid(f"{_OPERATION}='{operation}': this release writes {', '.join(_CALLS)}")
    if operation == "upsert" and WriteSettings.from_options(options).insert_duplicates != "none":
        return "insert"
    return operation


def _drop(path: str) -> None:
    """Delete a table, unless somebody is writing to it. Raises: Conflict."""
    location = parse_location(path, None)
    guard = open_guard(location, clock=SYSTEM_CLOCK, new_uuid=random_uuid)
    with guard.acquire("overwriting the table", format_instant(SYSTEM_CLOCK.now_ms(), UTC)):
        open_storage(location).delete_prefix("")


def _refuse_replacing_by(dataframe: "DataFrame", path: str, options: Mapping[str, str]) -> None:
    """Refuse, while the old table is still there, what could not be written once it is gone. Raises: Invalid."""
    new = _new_table(options)
    refuse_unwritable_keys(new_table_properties(new), None)
    WriteSettings.from_options(options)
    for name in (*new.record_key, *new.partition_by, *new.ordering):
        if name not in dataframe.columns:
            raise Invalid(f"column '{name}': expected among the rows' columns, found {', '.join(dataframe.columns)}")
    root = urlsplit(parse_location(path, None).uri).path.rstrip("/") + "/"
    if any(urlsplit(file).path.startswith(quote(root)) for file in dataframe.inputFiles()):
        raise Invalid(
            f"{path}: the rows are read from the table that mode('overwrite') deletes first; write them to another path"
        )


def _new_table(options: Mapping[str, str]) -> NewTable:
    """The table that a first write asks for. Raises: Invalid when it does not say the table's name."""
    name = find_fact(options, Fact.NAME)
    if not isinstance(name, str):
        raise Invalid("hoodie.table.name: expected the table's name among the options, found none")
    stored = {name: text for name, text in options.items() if name in _STORED or name.startswith(PREFIX)}
    return NewTable(
        name,
        record_key=_columns(find_fact(options, Fact.RECORD_KEY)),
        partition_by=_columns(find_fact(options, Fact.PARTITION_BY)),
        ordering=_columns(find_fact(options, Fact.ORDERING)),
        table_type=str(find_fact(options, Fact.TABLE_TYPE) or "COPY_ON_WRITE"),
        table_version=int(str(find_fact(options, Fact.VERSION) or 8)),
        create_schema=None,
        properties={**_bucket_options(options), **stored},
    )


def _bucket_options(options: Mapping[str, str]) -> dict[str, str]:
    """What is said of buckets, where they place the rows: each later write must do so alike."""
    if options.get(INDEX_TYPE, "").strip().upper() != "BUCKET":
        return {}
    return {name: options[name] for name in BUCKET_OPTIONS if name in options}


def _create(path: str, options: Mapping[str, str]) -> HudiTable:
    new = _new_table(options)
    return HudiTable.create(
        path,
        name=new.name,
        record_key=new.record_key,
        partition_by=new.partition_by,
        ordering=new.ordering,
        table_type=new.table_type,
        table_version=new.table_version,
        properties=new.properties,
    )


def _columns(fact: FactValue | None) -> tuple[str, ...]:
    return fact if isinstance(fact, tuple) else ()
