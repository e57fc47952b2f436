"""PySpark's `hudi` format over `HudiTable`: options to calls, with the names that Apache Hudi's users know."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api import frames, writes
from pyhudi.api.access import table_access
from pyhudi.api.bootstrap import bootstrap_by_options
from pyhudi.api.commit_callback import PREFIX as CALLBACK_PREFIX
from pyhudi.api.commit_callback import CommitCallback, tell_of_commit
from pyhudi.api.first_write import taken_back_on_failure
from pyhudi.api.overwrite import has_columns_of, has_facts_of, replacing_table
from pyhudi.api.own_names import load_named
from pyhudi.api.table import HudiTable
from pyhudi.api.table_paths import data_table_of, open_at_or_above
from pyhudi.api.writes import NO_CALL, WriteCall
from pyhudi.errors import CorruptFile, Invalid, NotFound, Unsupported
from pyhudi.format.names import METADATA_TABLE
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.struct_fields import find_field, is_path
from pyhudi.options.entries import Kind
from pyhudi.options.read_options import (
    DATA_SKIPPING,
    DATA_SKIPPING_FAILURE,
    METADATA,
    WHERE,
    ReadRequest,
    read_request_from_options,
)
from pyhudi.options.resolve import (
    OPERATION,
    PARTITIONS_TO_DELETE,
    PAYLOAD_CLASS,
    find_fact,
    is_delete_payload,
    merge_options,
    without_operation,
    without_others,
)
from pyhudi.options.table_facts import Fact, FactValue
from pyhudi.options.told_names import listed
from pyhudi.options.verdicts import find_entry
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.compaction.settings import compaction_of_batches
from pyhudi.storage.open import parse_location
from pyhudi.table.changes.incremental import OnCleaned
from pyhudi.table.facts.bucket_facts import BUCKET_OPTIONS, ENGINE, INDEX_TYPE
from pyhudi.table.facts.config import table_config
from pyhudi.table.facts.creation import NewTable, new_table_properties
from pyhudi.table.facts.key_properties import PREFIX, bare_name
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.versions import NEW_TABLE_VERSION
from pyhudi.write.input.key_settings import LOGICAL_TIMESTAMP, refuse_unwritable_keys
from pyhudi.write.input.made_keys import refuse_without_keys
from pyhudi.write.input.source import Operation, WriteSource
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELETES = ("delete", "delete_partition")
_OVERWRITES = ("insert_overwrite", "insert_overwrite_table")
_BOOTSTRAP = "bootstrap"
_CALLS = ("upsert", "insert", "bulk_insert", *_DELETES, *_OVERWRITES, _BOOTSTRAP)

_COMBINE = "hoodie.combine.before.insert"
_KEEPS_DUPLICATES = {
    "hoodie.datasource.insert.dup.policy": "none",
    "hoodie.datasource.write.insert.drop.duplicates": "false",
}
"""Of an overwrite: nothing is stored that a row could double."""

_ARGUMENTS = (Fact.NAME, Fact.RECORD_KEY, Fact.ORDERING, Fact.TABLE_TYPE, Fact.VERSION)
"""Facts of a new table that have arguments of their own; any other is stored as it is written."""


def load_table(spark: "SparkSession", path: str, options: Mapping[str, object]) -> "DataFrame":
    """`spark.read.format("hudi").options(...).load(path)`.

    The option `pyhudi.where` is the scan's `where`: the rows that it keeps, pruned by the table's indexes, too.
    """
    given = {name: value for name, value in without_others(options).items() if name != WHERE}
    where = None if options.get(WHERE, "") in ("", None) else options[WHERE]
    request = read_request_from_options(given)
    skipping = {name: given[name] for name in (DATA_SKIPPING, DATA_SKIPPING_FAILURE) if name in given}
    if (data_table := data_table_of(path)) is not None:
        return _metadata_records(spark, data_table, request, where)
    table, chosen = open_at_or_above(path, {METADATA: request.metadata_enabled, **skipping})
    if chosen is not None:
        if request.wants_changes or request.query_type == "incremental":
            raise NotFound(f"{path}: expected the path of a table, whose changes a query gives; found a partition's")
        where = chosen if where is None else f"({where}) AND {chosen}"
    if request.wants_changes:
        return table.cdc(request.start, request.end, where=where).as_json().to_spark(spark)
    if request.query_type == "incremental":
        on_cleaned: OnCleaned = "rows" if request.takes_what_is_left else "error"
        return table.incremental(request.start, request.end, where=where, on_cleaned=on_cleaned).to_spark(spark)
    return table.scan(as_of=request.as_of, query=request.query_type, where=where).to_spark(spark)


def _metadata_records(
    spark: "SparkSession", data_table: str, request: ReadRequest, where: object | None
) -> "DataFrame":
    """The records of a metadata table that is loaded by its path, as Apache Hudi's users do."""
    if request.query_type != "snapshot" or request.as_of is not None:
        raise Unsupported(
            f"{data_table}/{METADATA_TABLE}: expected a query of the records as they are now, found another query type "
            "or a moment; changes and older states are asked of the table itself"
        )
    rows = HudiTable.open(data_table).metadata.records_to_spark(spark)
    return rows if where is None else rows.where(str(where))


def save_dataframe(
    dataframe: "DataFrame", path: str, mode: str, options: Mapping[str, object], *, call: WriteCall = NO_CALL
) -> None:
    """`df.write.format("hudi").options(...).mode(...).save(path)`.

    `append` writes to the table, made if need be. `overwrite` replaces it, all or nothing; with the operations
    insert_overwrite and insert_overwrite_table it replaces rows of the table that is there. `ignore` and `error` are as
    in Spark. `call`: what else goes with the commit; its options do not count.
    """
    load_named(options)
    merged = merge_options(write=without_others(options), opened=None, table={})
    operation = _operation(merged)
    if operation == _BOOTSTRAP:
        _bootstrap(dataframe, path, mode, merged)
        return
    if operation in _DELETES and mode.lower() != "append":
        raise Invalid(f"mode '{mode}': expected 'append' with {OPERATION}='{operation}', which deletes what is stored")

    exists = HudiTable.exists(path)
    if operation in _DELETES and not exists:
        what = "delete partitions of" if operation == "delete_partition" else "delete from"
        raise NotFound(f"{path}: expected a table to {what}, found none")

    match mode.lower():
        case "append":
            pass
        case "overwrite":
            if exists and operation not in _OVERWRITES:
                _overwrite(dataframe, path, operation, merged, call)
                return
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

    if exists:
        _write(HudiTable.open(path), dataframe, operation, merged, call)
        return
    table = _create(path, _new_table(merged))
    with taken_back_on_failure(path):
        _write(table, dataframe, operation, merged, call)


def _bootstrap(dataframe: "DataFrame", path: str, mode: str, options: Mapping[str, str]) -> None:
    """Make a table of the files in `hoodie.bootstrap.base.path`. The DataFrame's rows do not count, only its session.

    Seen: Apache Hudi's users hand in an empty DataFrame. With one that has columns it takes these for the table's.
    """
    if HudiTable.exists(path):
        if mode.lower() == "ignore":
            return
        raise Invalid(f"{path}: expected no table to bootstrap, found one; choose another path, or delete the table")
    new = _new_table(options)
    bootstrap_by_options(dataframe, path, new, {k: v for k, v in options.items() if k != OPERATION})


def refuse_bad_options(path: str, options: Mapping[str, object]) -> None:
    """Check the options of writes that are to come, as far as this can be done without rows.

    Raises: as `save_dataframe`.
    """
    load_named(options)
    merged = merge_options(write=options, opened=None, table={})
    if _operation(merged) == _BOOTSTRAP:
        raise Invalid(f"{OPERATION}='{_BOOTSTRAP}': makes a table of files once; expected an operation that adds rows")
    AfterCommitSettings.from_options(merged)
    if HudiTable.exists(path):
        HudiTable.open(path)._handle.prepare(without_operation(merged))
        return
    WriteSettings.from_options(merged)
    refuse_unwritable_keys(new_table_properties(_new_table(merged)), None)


def _write(
    table: HudiTable, dataframe: "DataFrame", operation: str, options: Mapping[str, str], call: WriteCall
) -> None:
    operation = _operation_without_keys(table, dataframe, operation, options)
    call_options = without_operation(options)
    if call is NO_CALL:  # a stream compacts beside its batches
        call_options |= compaction_of_batches(table.table_type, {**table.properties, **call_options})
    said = replace(call, options=call_options)

    if operation == "delete_partition":
        named = options.get(PARTITIONS_TO_DELETE, "")
        chosen = (
            table.partitions_like(named.split(",")) if named else table.partitions_of(dataframe, options=call_options)
        )
        writes.delete_partitions(table._handle, chosen, said)
        return

    writes.write(table._handle, Operation(operation.upper()), dataframe, said)


def _overwrite(dataframe: "DataFrame", path: str, operation: str, options: Mapping[str, str], call: WriteCall) -> None:
    """Replace a table by what the options and the rows say, all or nothing.

    A table with the facts and columns of the old one is a commit that replaces every file group: history, time travel
    and readers under way stay. Any other is written beside the old one first, and then replaces it. The version of the
    old table stays, unless the options say one: scripts name it once, if at all, and another one would end the history.
    """
    old = _open_readable(path)
    version = NEW_TABLE_VERSION if old is None else old.table_version
    new = _new_table(options, version=version)
    refuse_unwritable_keys(new_table_properties(new), None)
    settings = WriteSettings.from_options(options)
    for name in (*new.record_key, *map(bare_name, new.partition_by), *new.ordering):
        if name not in dataframe.columns and not (is_path(name) and find_field(_columns_of(dataframe, path), name)):
            raise Invalid(f"column '{name}': expected among the rows' columns, found {listed(dataframe.columns)}")

    table = old
    if table is not None and _can_become(table, new, dataframe):
        operation = _operation_without_keys(table, dataframe, operation, options)
        config = table_config(table.properties, path=path)
        refuse_without_keys(config, Operation(operation.upper()), settings, dataframe.columns)
        call_options = without_operation(options)
        as_first = _as_first_write(operation, settings, makes_keys=not table.record_key)
        said = replace(call, options={**call_options, **as_first})
        writes.write(table._handle, Operation.INSERT_OVERWRITE_TABLE, dataframe, said)
        return

    told = {name: text for name, text in options.items() if name.startswith(CALLBACK_PREFIX)}
    lock = LockSettings.from_options(options, {})
    with replacing_table(path, wait_ms=settings.lock_wait_ms, lock=lock) as staged:
        others = {name: text for name, text in options.items() if name not in told}
        made = _create(staged, _new_table(others, version=version))
        _write(made, dataframe, operation, others, replace(call, may_begin=None))
    callback = CommitCallback.from_options(told)
    if callback is not None:
        read = table_access(path).snapshot
        tell_of_commit(callback, read, read().timeline.completed_writes[-1].requested)


def _open_readable(path: str) -> HudiTable | None:
    """The table that is there, if this release reads it."""
    try:
        return HudiTable.open(path)
    except (Unsupported, CorruptFile):
        return None


def _can_become(table: HudiTable, new: NewTable, dataframe: "DataFrame") -> bool:
    """Whether a commit can make a new table, with the rows of a DataFrame, of one that is there."""
    columns = _columns_of(dataframe, table.path)
    is_ring = table.properties.get(ENGINE, "").upper() == "CONSISTENT_HASHING"  # whose file groups are not replaced
    is_same = has_facts_of(table_config(table.properties, path=table.path), new)
    return is_same and has_columns_of(table.schema(), columns) and not is_ring


def _columns_of(dataframe: "DataFrame", path: str) -> pa.Schema:
    """The rows' columns, as a write to the table at a path takes them."""
    source: WriteSource = frames.spark_engine().source_of(dataframe, parse_location(path, None))
    return source.schema


def _as_first_write(operation: str, settings: WriteSettings, *, makes_keys: bool) -> dict[str, str]:
    """Options by which an overwrite stores what an operation stores in an empty table: one row a key, or all.

    Keys that the writer makes up are made anew, so no two rows share one.
    """
    drops = settings.insert_duplicates != "none"
    combines = settings.combine_before_insert or drops
    if operation == "upsert":
        combines = settings.combine_before_upsert and not makes_keys
    return {_COMBINE: str(combines).lower(), **_KEEPS_DUPLICATES}


def _operation_without_keys(
    table: HudiTable, dataframe: "DataFrame", operation: str, options: Mapping[str, str]
) -> str:
    """The operation, which on a table without key columns goes by the rows where options name none.

    Seen: so does 1.0.2 where it makes keys up: rows of a query, with their keys, are changed, others are added.
    """
    if options.get(OPERATION) or table.record_key:
        return operation
    return "upsert" if RECORD_KEY in dataframe.columns else "bulk_insert"


def _operation(options: Mapping[str, str]) -> str:
    """The operation that options ask for.

    Seen: 1.0.2 takes an upsert for an insert where duplicates are to be dropped or refused, named or by default.
    """
    operation = options.get(OPERATION, "").lower() or "upsert"
    if operation not in _CALLS:
        raise Invalid(f"{OPERATION}='{operation}': this release writes {', '.join(_CALLS)}")
    if operation == "upsert" and WriteSettings.from_options(options).insert_duplicates != "none":
        return "insert"
    return operation


def _new_table(options: Mapping[str, str], *, version: int = NEW_TABLE_VERSION) -> NewTable:
    """The table that a first write asks for. `version`: the table's, where the options say none.

    Raises: Invalid when they do not say the table's name.
    """
    name = find_fact(options, Fact.NAME)
    if not isinstance(name, str):
        raise Invalid("hoodie.table.name: expected the table's name among the options, found none")
    return NewTable(
        name=name,
        record_key=_columns(find_fact(options, Fact.RECORD_KEY)),
        partition_by=_columns(find_fact(options, Fact.PARTITION_BY)),
        ordering=_columns(find_fact(options, Fact.ORDERING)),
        table_type=str(find_fact(options, Fact.TABLE_TYPE) or "COPY_ON_WRITE"),
        table_version=int(str(find_fact(options, Fact.VERSION) or version)),
        create_schema=None,
        properties=stored_options(options),
    )


def stored_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that a new table stores, but for its name, columns, type and version."""
    stored = {name: text for name, text in options.items() if _is_stored(name, text)}
    return {**_bucket_options(options), **stored}


def _is_stored(name: str, text: str) -> bool:
    """Whether a new table stores an option of its first write as it is written."""
    if name == PAYLOAD_CLASS and is_delete_payload(text):
        return False  # it is about the rows of this write
    entry = find_entry(name)
    is_fact = entry.kind is Kind.PROPERTY or (entry.fact is not None and entry.fact not in _ARGUMENTS)
    return is_fact or name == LOGICAL_TIMESTAMP or name.startswith(PREFIX)


def _bucket_options(options: Mapping[str, str]) -> dict[str, str]:
    """What is said of buckets, where they place the rows: each later write must do so alike."""
    if options.get(INDEX_TYPE, "").strip().upper() != "BUCKET":
        return {}
    return {name: options[name] for name in BUCKET_OPTIONS if name in options}


def _create(path: str, new: NewTable) -> HudiTable:
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
