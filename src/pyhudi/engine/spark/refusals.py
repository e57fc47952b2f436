"""Refusals of what PySpark offers for other formats but this release does not offer for `hudi`.

Each refusal says what to use instead.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from pyhudi.errors import Unsupported

FORMATS = frozenset({"hudi", "org.apache.hudi"})

_FROM_STREAM = (
    "readStream of Hudi tables needs a classic session, not Spark Connect: read what is new since an instant with "
    "spark.read.format('hudi').option('hoodie.datasource.query.type', 'incremental')"
    ".option('hoodie.datasource.read.begin.instanttime', instant).load(path)"
)
_TO_STREAM = (
    "writeStream to Hudi tables needs a classic session, not Spark Connect: write each batch with "
    "writeStream.foreachBatch(lambda rows, number: HudiTable.open(path).upsert(rows))"
)
_NO_CATALOG = (
    "no catalog knows Hudi tables in this release: write with .mode('append').save(path); for SQL, "
    "spark.read.format('hudi').load(path).createOrReplaceTempView(name)"
)


_NOT_FOUND = re.compile(r"DATA_SOURCE_NOT_FOUND\].*?data source: ([\w.]+?)\.?(?!\S)", re.DOTALL)
"""Matches Spark's error for a format that Spark does not know, in any release."""


_PATH_NOT_FOUND = re.compile(r"TABLE_OR_VIEW_NOT_FOUND\].*?`([\w.]+)`\.`[^`]*/[^`]*`", re.DOTALL)
"""The same where a query names a format and a path, as in ``select * from parquet.`/path` ``."""


def is_hudi(source: object) -> bool:
    """Whether a format's name is that of Hudi. Upper and lower case are the same, as in Spark."""
    return isinstance(source, str) and source.lower() in FORMATS


def refuse_streams(readwriter: Any) -> None:
    """Refuse the format in PySpark's module of streaming readers and writers."""
    _refuse(readwriter.DataStreamReader, ("format", "load"), _FROM_STREAM)
    _refuse(readwriter.DataStreamWriter, ("format", "start", "toTable"), _TO_STREAM)


def refuse_catalog(writer: type, writer_of_tables: type, stated: Callable[[Any], object]) -> None:
    """Refuse calls that write to a table by its catalog name. `stated`: gives the format that was set on a writer."""
    _refuse(writer, ("saveAsTable", "insertInto"), _NO_CATALOG, stated)
    _refuse(writer_of_tables, ("using",), _NO_CATALOG)


def refuse_creation(catalog: type) -> None:
    """Refuse calls that make catalog tables of the format."""
    _refuse(catalog, ("createTable", "createExternalTable"), _NO_CATALOG)


def refuse_sql(session: type) -> None:
    """Refuse tables of the format in SQL texts.

    Spark itself parses an SQL text. Only its error that the format is unknown is replaced by ours.
    """
    if "sql" in session.__dict__:
        session.sql = _told_otherwise(session.__dict__["sql"], _NO_CATALOG)  # type: ignore[attr-defined]


def _told_otherwise(original: Callable[..., Any], instead: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except Exception as error:  # of any kind: PySpark 3.5 lets Java's own through
            found = _NOT_FOUND.search(str(error)) or _PATH_NOT_FOUND.search(str(error))
            if found is None or not is_hudi(found[1]):
                raise
            raise Unsupported(instead) from error

    return call


def _refuse(
    kind: type, names: Iterable[str], instead: str, stated: Callable[[Any], object] = lambda builder: None
) -> None:
    for name in names:
        if name in kind.__dict__:
            setattr(kind, name, _refusing(kind.__dict__[name], instead, stated))


def _refusing(original: Callable[..., Any], instead: str, stated: Callable[[Any], object]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs).arguments
        if is_hudi(given.get("format") or given.get("source") or given.get("provider") or stated(self)):
            raise Unsupported(instead)
        return original(self, *args, **kwargs)

    return call
