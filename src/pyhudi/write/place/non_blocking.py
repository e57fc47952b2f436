"""Non-blocking concurrency control: writers append to the logs of one bucket at once, whatever their keys.

The key's bucket says the file group, each log is named after its write, and readers merge what all of them wrote. So
nothing has to be compared when a write completes. Spec: format/actions.md section 11.4.
"""

from pyhudi.errors import Invalid, Unsupported
from pyhudi.table.facts.bucket_facts import BUCKET_COUNT, ENGINE, INDEX_TYPE, BucketFacts
from pyhudi.table.facts.config import TableConfig
from pyhudi.versions import LogNaming
from pyhudi.write.input.source import Operation, PreparedWrite
from pyhudi.write.settings import CONCURRENCY_MODE, WriteSettings


def refuse_unfit_for_non_blocking(
    config: TableConfig, buckets: BucketFacts | None, operation: Operation, settings: WriteSettings
) -> None:
    """Refuse a non-blocking write where Apache Hudi refuses it. Nothing has been written yet.

    Raises: Unsupported for a table version whose logs are named after their slice; Invalid for another type of table,
    another index than fixed buckets, or an overwrite. A deletion of partitions brings no rows: it goes as without the
    option.
    """
    if not settings.is_non_blocking:
        return
    asked = f"table '{config.name}': option '{CONCURRENCY_MODE}'='{settings.concurrency_mode}'"
    instead = "leave the option out: several writers at once are safe without it"

    if not config.is_merge_on_read:
        raise Invalid(f"{asked}: expected a table of type MERGE_ON_READ, found {config.table_type}; {instead}")
    if config.version.log_naming is not LogNaming.AFTER_WRITE:
        raise Unsupported(
            f"{asked}: expected table version 8 or 9, found {config.version}: its writers would give their logs one "
            f"name; upgrade the table, or {instead}"
        )

    if buckets is None or buckets.engine != "SIMPLE":
        found = settings.index_type if buckets is None else f"'{ENGINE}'='{buckets.engine}'"
        raise Invalid(
            f"{asked}: expected the bucket index with a fixed number of buckets, found {found}; make the table with "
            f"'{INDEX_TYPE}'='BUCKET' and '{BUCKET_COUNT}', or {instead}"
        )

    if operation.replaces_groups and operation is not Operation.DELETE_PARTITION:
        raise Invalid(
            f"{asked}: expected upsert, insert, bulk_insert or delete, found {operation.value.lower()}, which replaces "
            "file groups that others append to; leave the option out for this write"
        )


def appends_freely(prepared: PreparedWrite, settings: WriteSettings) -> bool:
    """Whether a write only appends rows to logs, and so may append the keys that others append at the same time.

    Not so a write that goes by what is stored: one that drops stored keys, or that brings some of the columns and must
    know which rows they complete. Nor a bulk insert, which makes base files for new buckets.
    Seen: Apache Hudi looks for conflicts of a bulk insert, too.
    """
    if not settings.is_non_blocking or prepared.is_partial or prepared.operation is Operation.BULK_INSERT:
        return False
    return prepared.operation is not Operation.INSERT or settings.insert_duplicates == "none"
