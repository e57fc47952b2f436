"""What carrying out SQL statements needs of a Spark session: its catalog, its options, texts that Spark evaluates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.connect.catalog import ConnectCatalog
from pyhudi.engine.spark.connect.column_texts import connect_texts
from pyhudi.engine.spark.connect.named_rows import NAME_PREFIX, sql_of_named
from pyhudi.engine.spark.session import is_classic
from pyhudi.engine.spark.sql.catalog import CatalogEntry, SessionCatalog
from pyhudi.engine.spark.sql.column_texts import ColumnTexts, classic_texts
from pyhudi.engine.spark.sql.gateway import session_options
from pyhudi.errors import NotFound
from pyhudi.options.entries import Kind
from pyhudi.options.read_options import DATA_SKIPPING, METADATA
from pyhudi.options.resolve import COMMIT_METADATA_PREFIX
from pyhudi.options.verdicts import find_entry
from pyhudi.services.compaction.settings import compaction_of_batches
from pyhudi.sql.insert_settings import OF_SQL
from pyhudi.sql.plain_conditions import Plain, plain_conditions
from pyhudi.sql.words import Name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PREFIX = "hoodie."
_READ_OPTIONS = (METADATA, DATA_SKIPPING)
_NAMES_IN_QUOTES = "spark.sql.ansi.doubleQuotedIdentifiers"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class SqlSession:
    """A Spark session whose SQL knows Hudi tables. `own_sql`: PySpark's own `SparkSession.sql`.

    `named`: under Spark Connect, DataFrames that have names in texts of this object.
    """

    spark: SparkSession
    own_sql: Callable[..., DataFrame]
    named: dict[str, DataFrame] = field(default_factory=dict)

    @cached_property
    def catalog(self) -> SessionCatalog | ConnectCatalog:
        return SessionCatalog(self.spark) if self.is_classic else ConnectCatalog(self.spark, self.own_sql)

    @cached_property
    def is_classic(self) -> bool:
        """Whether the session has a JVM in reach. Under Spark Connect it has none."""
        return is_classic(self.spark)

    def spark_sql(self, text: str, args: Any = None, **frames: Any) -> DataFrame:
        """The answer of Spark to a text, in which names of `view` may stand."""
        return sql_of_named(self.own_sql, text, self.named, args, frames)

    def value(self, text: str) -> object:
        """The value of an expression without columns."""
        row = self.spark_sql(f"SELECT {text}").first()
        assert row is not None
        return row[0]

    def get_entry(self, name: Name) -> CatalogEntry:
        """Raises: NotFound where the catalog has no Hudi table of this name."""
        entry = self.catalog.find(name)
        if entry is None:
            raise NotFound(f"table '{'.'.join(name)}': expected a Hudi table of this name in the catalog, found none")
        return entry

    def open(self, entry: CatalogEntry) -> HudiTable:
        """The table of an entry, with the session's options and those of the entry's TBLPROPERTIES for its writes."""
        options = self.options_of_writes(entry)
        table = HudiTable.open(entry.path, options=options)
        added = compaction_of_batches(table.table_type, {**table.properties, **options})
        return HudiTable.open(entry.path, options={**options, **added}) if added else table

    def options_of_writes(self, entry: CatalogEntry | None) -> dict[str, str]:
        """As `write_options`, without the options that only SQL goes by."""
        return {name: text for name, text in self.write_options(entry).items() if name not in OF_SQL}

    def write_options(self, entry: CatalogEntry | None) -> dict[str, str]:
        """`SET hoodie.…` of the session, and TBLPROPERTIES that begin so. The session wins.

        What TBLPROPERTIES say of the table itself is left out: it was so when the table was made. Upgrades change it.
        With a prefix of their own for entries of the commit's metadata, names that begin with it count, too.
        """
        stated = {} if entry is None else entry.properties
        of_session = self.session_options
        prefix = of_session.get(COMMIT_METADATA_PREFIX, stated.get(COMMIT_METADATA_PREFIX, "")) or _PREFIX
        own = {name: text for name, text in stated.items() if name.startswith((_PREFIX, prefix))}
        is_of_spark = "spark.".startswith(prefix) or prefix.startswith("spark.")  # settings, with their secrets
        entries = session_options(self.spark, prefix) if prefix != _PREFIX and not is_of_spark else {}
        return {**{name: text for name, text in own.items() if not _is_of_table(name)}, **of_session, **entries}

    def read_options(self) -> dict[str, str]:
        """Options of the session that say how tables are read."""
        told = {name: self.spark.conf.get(name, None) for name in _READ_OPTIONS}
        return {name: text for name, text in told.items() if text is not None}

    @property
    def quotes_names(self) -> bool:
        """Whether `"a"` may be a name, and no text."""
        return self.spark.conf.get(_NAMES_IN_QUOTES, "false") != "false"

    def plain_conditions(self, condition: str, alias: str, types: Mapping[str, Plain]) -> str | None:
        """As the function of this name, of a condition as this session reads it."""
        return None if '"' in condition and self.quotes_names else plain_conditions(condition, alias, types)

    @property
    def session_options(self) -> Mapping[str, str]:
        return session_options(self.spark, _PREFIX)

    def column_texts(self, rows: DataFrame | None, *, alias: str = "", taken: str = "", what: str) -> ColumnTexts:
        """Columns of PySpark as SQL text. Arguments: as of `classic_texts`."""
        if self.is_classic:
            return classic_texts(self.spark, rows, alias=alias, taken=taken, what=what)
        return connect_texts(self.spark, rows, alias=alias, taken=taken, what=what)

    def nothing(self) -> DataFrame:
        """The answer of a statement that gives no rows."""
        return self.spark.range(0).select()

    def rows(self, rows: list[tuple[Any, ...]], columns: str) -> DataFrame:
        """A few rows as a DataFrame. `columns`: as in `CREATE TABLE`."""
        return self.spark.createDataFrame(rows, columns)

    def new_view(self, what: str) -> str:
        """A name that no view has."""
        return f"{NAME_PREFIX}{what}_{next(_numbers)}"

    @contextmanager
    def view(self, rows: DataFrame, name: str) -> Iterator[str]:
        """A name for rows in texts that are run in a block: a temporary view, or under Connect one of `named`."""
        if not self.is_classic:
            self.named[name] = rows
            try:
                yield name
            finally:
                del self.named[name]
            return
        rows.createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)


def _is_of_table(name: str) -> bool:
    """Whether an option says what a table is, which its own properties say, too."""
    entry = find_entry(name)
    return entry.fact is not None or entry.kind is Kind.PROPERTY
