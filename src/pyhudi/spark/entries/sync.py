"""A write to a path that asks for Apache Hudi's sync: the session's Hive metastore is told of the table.

Seen: 1.2.0 (`HiveSyncTool`): a copy-on-write table gets its name. A merge-on-read table gets three: its own and
`_rt` for the newest rows, `_ro` for the base files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyhudi.api.datasource import save_dataframe
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import CATALOG, path_of
from pyhudi.engine.spark.sql.hive_entries import logged_failure, metastore_uris
from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.metastore_sync import METASTORE, MetastoreSyncSettings, without_sync
from pyhudi.options.resolve import find_fact, option_texts, without_others
from pyhudi.options.table_facts import Fact
from pyhudi.spark.entries.kept import is_kept, keep_entry
from pyhudi.spark.entries.new import put_entry
from pyhudi.spark.session import SqlSession
from pyhudi.sql.words import quoted_name
from pyhudi.storage.open import parse_location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WITH_LOGS = "MERGE_ON_READ"


class PathWrites:
    """Writes of DataFrames to paths, with a sync where their options ask for one."""

    def __init__(self, session_of: Callable[[SparkSession], SqlSession]) -> None:
        self._session_of = session_of

    def save(self, rows: DataFrame, path: str, mode: str, options: Mapping[str, object]) -> None:
        """As `save_dataframe`. Raises: as `planned_sync`, too."""
        left, tell = planned_sync(self._session_of(rows.sparkSession), path, options)
        save_dataframe(rows, path, mode, left)
        if tell is not None:
            tell()


def planned_sync(
    session: SqlSession, path: str, options: Mapping[str, object]
) -> tuple[Mapping[str, object], Callable[[], None] | None]:
    """The write's options without those of a sync, and what tells the metastore of a commit; None: nobody asks for it.

    What the sync needs is looked at now, before anything is written. The commit stands whatever the metastore says: its
    failure is a line of the log.
    Raises: Unsupported for a session without a metastore; Invalid for a name that is another table's.
    """
    texts = option_texts(without_others(options))
    sync = MetastoreSyncSettings.from_options(texts)
    if sync is None:
        return options, None

    _refuse_other_metastore(session, sync, path)
    plain = path_of(path)
    place = plain if "://" in plain else parse_location(plain).uri  # the scheme stays, which other engines go by
    _refuse_taken_names(session, sync, place, texts)

    def tell() -> None:
        with logged_failure(f"{path}: the Hive metastore was not told of a commit"):
            _tell(session, sync, place)

    return without_sync(options), tell


def _refuse_other_metastore(session: SqlSession, sync: MetastoreSyncSettings, path: str) -> None:
    if not is_kept(session):
        raise Unsupported(
            "option 'hoodie.datasource.hive_sync.enable'='true': expected a session whose names are in a Hive "
            f"metastore (SparkSession.builder.enableHiveSupport(), not Spark Connect), found another; '{path}' can be "
            "read by its path, or gets a name by CREATE TABLE … USING hudi LOCATION …"
        )
    own = metastore_uris(session.spark)
    if sync.uris and sync.uris != own:
        raise Unsupported(
            f"option '{METASTORE}'='{sync.uris}': expected the metastore of the session, found that it has "
            f"'{own or 'Derby'}'; set spark.hadoop.hive.metastore.uris when the session is built"
        )


def _refuse_taken_names(
    session: SqlSession, sync: MetastoreSyncSettings, place: str, options: Mapping[str, str]
) -> None:
    table = HudiTable.open(place) if HudiTable.exists(place) else None
    kind = find_fact(options, Fact.TABLE_TYPE) if table is None else table.table_type
    for name in sync.names("" if table is None else table.name, has_logs=kind == _WITH_LOGS):
        full_name = (CATALOG, sync.database, name)
        entry = session.catalog.find_own(full_name)
        if entry is None and not session.catalog.exists(full_name):
            continue
        if entry is None or parse_location(entry.path).uri != parse_location(place).uri:
            what = "a table of another format, or a view" if entry is None else f"the table at '{entry.path}'"
            raise Invalid(
                f"option 'hoodie.datasource.hive_sync.table': expected a name that is free, or that of '{place}', "
                f"found '{sync.database}.{name}', which is {what}; choose another name, or drop that one"
            )


def _tell(session: SqlSession, sync: MetastoreSyncSettings, place: str) -> None:
    if not HudiTable.exists(place):
        return  # a stream that has passed over its first batch
    table = HudiTable.open(place)
    if sync.makes_database:
        session.spark_sql(f"CREATE DATABASE IF NOT EXISTS {quoted_name(sync.database)}")
    for name, reads_optimized in sync.names(table.name, has_logs=table.table_type == _WITH_LOGS).items():
        full_name = (CATALOG, sync.database, name)
        if session.catalog.find_own(full_name) is None:
            put_entry(session, table, (sync.database, name), path=place, reads_optimized=reads_optimized)
        keep_entry(session, session.get_entry(full_name))
