"""Evaluating an input once. An input is kept if reading it again might give other rows or cost much."""

from typing import Any

from pyspark.sql import DataFrame

from pyhudi.engine.spark.java import elements
from pyhudi.engine.spark.session import is_classic, session_of

_PLAIN_NODES = frozenset({"LogicalRelation", "LocalRelation", "Range", "Project", "Filter"})
_NODES_MAX = 400
_EXPRESSIONS_MAX = 2_000
_CLOCKS = ("Current", "Now", "LocalTimestamp")


class KeptRows:
    """Rows that are kept, to be read several times, until they are released together."""

    def __init__(self) -> None:
        self._to_release: list[DataFrame] = []

    def keep(self, rows: DataFrame) -> DataFrame:
        """The rows in a form that may be read several times (`keep_input`)."""
        kept, to_release = keep_input(rows)
        if to_release is not None:
            self._to_release.append(to_release)
        return kept

    def release(self) -> None:
        """Let go of what is kept."""
        while self._to_release:
            self._to_release.pop().unpersist()


def keep_input(rows: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """The input in a form that may be read several times, and a DataFrame to unpersist afterwards, if any.

    A plain deterministic scan of files, and rows that are in memory already, are simply read again. Anything else is
    checkpointed in the executors' memory and on their disks (`localCheckpoint`).
    """
    if is_plain_scan(rows):
        return rows, None

    try:
        return rows.localCheckpoint(), None
    except (AttributeError, NotImplementedError):  # Spark Connect before 4.0 has no checkpoints
        kept = rows.persist()
        return kept, kept


def is_plain_scan(rows: DataFrame) -> bool:
    """Whether the plan only reads files or local rows, and projects and filters them deterministically.

    User-defined functions do not count as plain, even if they are declared deterministic: they may have side effects,
    or be expensive. False without a gateway to the JVM, because the plan cannot be seen.
    """
    if not is_classic(session_of(rows)):
        return False

    execution = rows._jdf.queryExecution()
    pending = [execution.optimizedPlan()]
    seen = 0
    while pending:
        node = pending.pop()
        seen += 1
        kind = node.getClass().getSimpleName()
        if seen > _NODES_MAX or kind not in _PLAIN_NODES:
            return False
        if kind == "LogicalRelation" and node.relation().getClass().getSimpleName() != "HadoopFsRelation":
            return False
        pending += elements(node.children())

    # The optimizer replaces the clock, and functions over local rows, by values, and does so anew at each evaluation.
    # So the plan as it was asked for must be plain, too.
    return _is_plain(execution.analyzed()) and _is_plain(execution.optimizedPlan())


def _is_plain(plan: Any) -> bool:
    """Whether a plan's expressions are all deterministic, Spark's own, and independent of the clock."""
    nodes: list[Any] = [plan]
    expressions: list[Any] = []
    seen = 0

    while nodes or expressions:
        if not expressions:
            node = nodes.pop()
            nodes += elements(node.children())
            expressions = elements(node.expressions())
            continue

        expression = expressions.pop()
        seen += 1
        name = expression.getClass().getSimpleName()
        if name == "AttributeReference":
            continue

        if (
            seen > _EXPRESSIONS_MAX
            or name.startswith(_CLOCKS)
            or any(word in name for word in ("UDF", "Subquery", "Invoke"))
            or not expression.deterministic()
        ):
            return False
        expressions += elements(expression.children())
    return True
