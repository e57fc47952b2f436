"""Filters of a query as they reach a scan: which may be judged before the scan, and as SQL text."""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

from pyspark.sql import SparkSession

from pyhudi.engine.spark.java import elements, java_class
from pyhudi.sql.words import Cursor

_PATTERNS: Final = "org.apache.spark.sql.catalyst.trees.TreePattern"
_UTC: Final = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT")


class Narrowing(Protocol):
    """What tells the files that conditions leave."""

    def left_by(self, conditions: Sequence[str], *, has_times: bool) -> Collection[str] | None:
        """The paths of the files that may hold a row for which all conditions hold; None: all files.

        `has_times`: whether times in the texts are of UTC.
        """


class LeftByIndexes:
    """The files of a plan that the table's indexes leave of a query's filters.

    Several scans of one plan are asked with the same filters. So the last answer is kept.
    """

    def __init__(self, spark: SparkSession, narrowing: Narrowing) -> None:
        self._spark, self._narrowing = spark, narrowing
        self._lock = threading.Lock()
        self._last: tuple[list[str], Collection[str] | None] = [], None

    def of(self, filters: Any) -> Collection[str] | None:
        """The paths of the files to read; None: all. `filters`: a Scala sequence of Catalyst expressions.

        Raises: as `pyhudi.table.read.narrowing.Narrowing`.
        """
        usable = [one for one in elements(filters) if is_judged(self._spark, one)]
        extracts = java_class(self._spark, _PATTERNS).EXTRACT_VALUE()
        texts = [_unqualified(str(one.sql())) for one in usable if not one.containsPattern(extracts)]
        if not texts:
            return None
        has_times = str(self._spark.conf.get("spark.sql.session.timeZone")) in _UTC
        with self._lock:
            if self._last[0] != texts:
                self._last = texts, self._narrowing.left_by(texts, has_times=has_times)
            return self._last[1]


LeftBy = Callable[[Any], Collection[str] | None]
"""As `LeftByIndexes.of`."""


def is_judged(spark: SparkSession, expression: Any) -> bool:
    """Whether a filter may be judged by the names of its columns, before the scan.

    Spark's own `_metadata.file_name` has the name `file_name`. Spark marks such columns, and no other.
    """
    patterns = java_class(spark, _PATTERNS)
    if not expression.deterministic() or expression.containsPattern(patterns.PLAN_EXPRESSION()):
        return False
    columns = elements(expression.references().toSeq())
    return bool(columns) and all(column.metadata().json() == "{}" for column in columns)


def _unqualified(text: str) -> str:
    """The text with the columns' bare names. No field of a struct may be in the text.

    Example: `(spark_catalog.db.t.id = 'a')` gives `(id = 'a')`.
    """
    cursor, pieces, start = Cursor(text), list[str](), 0
    while not cursor.is_done:
        word = cursor.words[cursor.at]
        cursor.at += 1
        if word.is_name and cursor.sees(".") and (following := cursor.word(1)) is not None and following.is_name:
            pieces.append(text[start : word.start])
            start = following.start
            cursor.at += 1
    return "".join(pieces) + text[start:]
