"""Evaluating an input once: kept where reading it again might give other rows or cost much."""

from pyspark.sql import DataFrame

from pyhudi.engine.spark.session import is_classic, session_of

_PLAIN_NODES = frozenset({"LogicalRelation", "LocalRelation", "Range", "Project", "Filter"})
_NODES_MAX = 400


def keep_input(rows: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """The input in a form that may be read several times, and what to let go of afterwards.

    A plain deterministic scan of files, or rows that are in memory already, are read again; anything else is
    checkpointed on the executors' disks and memory (`localCheckpoint`).
    """
    if is_plain_scan(rows):
        return rows, None
    try:
        return rows.localCheckpoint(), None
    except (AttributeError, NotImplementedError):  # Spark Connect before 4.0 has no checkpoints
        kept = rows.persist()
        return kept, kept


def is_plain_scan(rows: DataFrame) -> bool:
    """Whether the plan only reads files or local rows and projects and filters them deterministically.

    Functions of users may have effects or be dear, whatever they say of themselves: they do not count as plain.
    False where there is no gateway to look through.
    """
    if not is_classic(session_of(rows)):
        return False
    pending = [rows._jdf.queryExecution().optimizedPlan()]
    seen = 0
    while pending:
        node = pending.pop()
        seen += 1
        if seen > _NODES_MAX or node.getClass().getSimpleName() not in _PLAIN_NODES:
            return False
        if node.getClass().getSimpleName() == "LogicalRelation":
            relation = node.relation().getClass().getSimpleName()
            if relation != "HadoopFsRelation":
                return False
        if node.getClass().getSimpleName() in ("Project", "Filter") and not _is_plain(node):
            return False
        children = node.children()
        pending += [children.apply(i) for i in range(children.size())]
    return True


def _is_plain(node: object) -> bool:
    """Whether a node's expressions are deterministic and of Spark's own."""
    expressions = node.expressions()  # type: ignore[attr-defined]
    pending = [expressions.apply(i) for i in range(expressions.size())]
    seen = 0
    while pending:
        expression = pending.pop()
        seen += 1
        name = expression.getClass().getSimpleName()
        if (
            seen > _NODES_MAX
            or not expression.deterministic()
            or "UDF" in name
            or "Subquery" in name
            or "Invoke" in name
        ):
            return False
        children = expression.children()
        pending += [children.apply(i) for i in range(children.size())]
    return True
