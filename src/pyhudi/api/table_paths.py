"""Paths that DataFrames are loaded from: a table's own, a partition's, or a pattern of either."""

from collections.abc import Mapping
from contextlib import suppress

from pyhudi.api.table import HudiTable
from pyhudi.errors import HudiError, NotFound
from pyhudi.format.names import METADATA_TABLE
from pyhudi.format.schema.conversion import PARTITION_PATH
from pyhudi.sql.words import quoted_text

_LEVELS_MAX = 5
"""Of folders, between a path that is no table and the table that it may be meant for."""

_PATTERNS = frozenset("*?[]{}\\")


def open_at_or_above(path: str, options: Mapping[str, object]) -> tuple[HudiTable, str | None]:
    """The table that a path means, and the condition that its rows meet; None: all rows.

    A path below the table is a partition's folder, or that of several. Any `/*` at its end are passed over: scripts of
    old releases of Apache Hudi say `path + "/*/*"`.
    Raises: NotFound for a path of no table, and for one below a table that is no partition's.
    """
    try:
        return HudiTable.open(path, options=options), None
    except NotFound as error:
        path = path.rstrip("/")
        above = find_table_at_or_above(path.rpartition("/")[0])
        if above is None:
            raise
        below = path[len(above) :].strip("/").split("/")
        while below and below[-1] == "*":
            below.pop()
        table, folder = HudiTable.open(above, options=options), "/".join(below)
        if not folder:
            return table, None
        partitions = _partitions_below(table, folder)
        if not partitions:
            raise NotFound(
                f"{path}: expected the path of a table or of its partitions, found another one below the table "
                f"'{above}'; load that, and choose rows with where(...)"
            ) from error
        return table, f"{PARTITION_PATH} IN ({', '.join(map(quoted_text, partitions))})"


def data_table_of(path: str) -> str | None:
    """The table whose metadata table lies at this path; None for any other path."""
    path = path.rstrip("/")
    return path.removesuffix(f"/{METADATA_TABLE}") if path.endswith(f"/{METADATA_TABLE}") else None


def find_table_at_or_above(path: str) -> str | None:
    """The table that a path is, or lies below; None for any other path, and for one that cannot be looked at."""
    for _ in range(_LEVELS_MAX):
        if not path:
            break
        with suppress(HudiError):  # what is above a bucket is no folder, and another process may see what this cannot
            if HudiTable.exists(path):
                return path
        path = path.rpartition("/")[0]
    return None


def _partitions_below(table: HudiTable, folder: str) -> list[str]:
    """The partitions that a folder is, or that lie below it, if rows tell which one they lie in."""
    snapshot = table._access.snapshot()
    if _PATTERNS.intersection(folder) or not snapshot.config.has_meta_fields:
        return []
    return [path for path in snapshot.listing.partitions() if path == folder or path.startswith(f"{folder}/")]
