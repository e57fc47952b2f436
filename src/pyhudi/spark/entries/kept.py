"""After a write by name: the metastore's entry knows the table's columns and partitions, as Apache Hudi keeps it.

Only where names are entries of a Hive metastore: there other engines go by what stands in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import unquote

from pyhudi.api.partitions import living_partitions
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import CatalogEntry, SessionCatalog
from pyhudi.engine.spark.sql.hive_entries import (
    SYNCED,
    SYNCED_COMPLETION,
    HiveEntries,
    keeps_names_in_hive,
    logged_failure,
)
from pyhudi.errors import Unsupported
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.inspect.commits import get_commit
from pyhudi.spark.session import SqlSession
from pyhudi.spark.shows import tell_columns

Values: TypeAlias = tuple[str, ...]
"""The values of the partition columns, in order, as the metastore has them."""

_URL_ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
_SUFFIXES = ("_ro", "_rt")
"""Of the names that Apache Hudi gives a merge-on-read table beside its own."""


def keep_entry(session: SqlSession, entry: CatalogEntry, *, looks_at_all: bool = False) -> None:
    """Tell the metastore of what commits since the last time have done. `looks_at_all`: at all partitions instead.

    The commit stands already: a metastore that fails is a line of the log, and the next write tells it all.
    Statistics of ANALYZE go: they are of the rows of before.
    """
    if isinstance(session.catalog, SessionCatalog):
        with logged_failure(f"table '{'.'.join(entry.full_name)}': the catalog's statistics are of before a commit"):
            session.catalog.drop_statistics(entry)
    if not is_kept(session):
        return
    with logged_failure(f"table '{'.'.join(entry.full_name)}': the Hive metastore was not told of a commit"):
        own = session.catalog.find_own(entry.full_name)
        for one in (own, *names_beside(session, entry)):
            if one is not None and one.path == entry.path:
                _keep(session, one, looks_at_all=looks_at_all)


def names_beside(session: SqlSession, entry: CatalogEntry) -> list[CatalogEntry]:
    """The names that a sync gave a merge-on-read table beside its own."""
    found = (session.catalog.find_own((*entry.full_name[:-1], f"{entry.name}{suffix}")) for suffix in _SUFFIXES)
    return [one for one in found if one is not None and one.path == entry.path]


def is_kept(session: SqlSession) -> bool:
    """Whether the session's names are entries that tell of partitions."""
    return keeps_names_in_hive(session.spark)


def stands_beside(entry: CatalogEntry, table_name: str) -> bool:
    """Whether a name is one that Apache Hudi gave a merge-on-read table beside its own."""
    return entry.reads_optimized or entry.name == f"{table_name}_rt".lower()


def refuse_base_files(entry: CatalogEntry, *, what: str) -> None:
    """Raises: Unsupported for a change by a name that stands for the base files alone."""
    if entry.reads_optimized:
        raise Unsupported(
            f"{what} of '{'.'.join(entry.full_name)}': this name stands for the base files of the table at "
            f"{entry.path}, without newer rows in logs; change the table by its own name"
        )


def _keep(session: SqlSession, entry: CatalogEntry, *, looks_at_all: bool) -> None:
    table, hive = HudiTable.open(entry.path, options=session.read_options()), HiveEntries(session.spark)
    tell_columns(session, entry, comments={})
    completed = [one for one in table.timeline() if one.completed is not None and one.action in WRITE_ACTIONS]
    if not completed:
        return
    if entry.partition_by:
        known = None if looks_at_all else _known_until(entry, completed)
        living, gone = _all(table, hive, entry) if known is None else _changed(table, entry, completed, known)
        hive.add_partitions(entry.database, entry.name, living)
        hive.drop_partitions(entry.database, entry.name, entry.partition_by, gone)
    told = {
        SYNCED: max(one.requested for one in completed),
        SYNCED_COMPLETION: max(one.completed or "" for one in completed),
    }
    if any(entry.properties.get(name) != text for name, text in told.items()):
        hive.set_properties(entry.database, entry.name, told)


def _known_until(entry: CatalogEntry, completed: list[Instant]) -> tuple[str, str] | None:
    """The two times of the commits that the entry knows; None where the timeline does not tell what came since."""
    requested, last = entry.properties.get(SYNCED), entry.properties.get(SYNCED_COMPLETION)
    if not requested or not last or requested < min(one.requested for one in completed):
        return None
    return requested, last


def _all(table: HudiTable, hive: HiveEntries, entry: CatalogEntry) -> tuple[dict[str, Values], list[Values]]:
    """The partitions of the table, and those that the metastore has beyond them."""
    living = _by_path(table, entry, living_partitions(table))
    values = set(living.values())
    return living, [one for one in hive.partition_values(entry.database, entry.name) if one not in values]


def _changed(
    table: HudiTable, entry: CatalogEntry, completed: list[Instant], known: tuple[str, str]
) -> tuple[dict[str, Values], list[Values]]:
    """The partitions that commits since then have written or replaced: those with file groups, and the others."""
    requested, last = known
    paths: set[str] = set()
    for one in completed:
        if one.requested > requested or (one.completed or "") > last:
            metadata = get_commit(table, one.requested).metadata
            paths |= {*metadata.partition_to_write_stats, *(metadata.partition_to_replace_file_ids or {})}
    touched = _by_path(table, entry, paths)
    living = set(living_partitions(table, touched))
    alive = {path: values for path, values in touched.items() if path in living}
    return alive, [values for path, values in touched.items() if path not in living]


def _by_path(table: HudiTable, entry: CatalogEntry, paths: Iterable[str]) -> dict[str, Values]:
    """The values of partition columns by path.

    Paths of more or fewer folders than columns, such as `2026/11/26` of a day, are left out: they have no such values.
    """
    names = [name.lower() for name in entry.partition_by]
    is_encoded = table.properties.get(_URL_ENCODED, "false").lower() == "true"
    found: dict[str, Values] = {}
    for path in sorted(paths):
        folders = path.split("/")
        if len(folders) == len(names) and all(folders):
            texts = [
                folder[len(name) + 1 :] if folder.lower().startswith(f"{name}=") else folder
                for name, folder in zip(names, folders, strict=True)
            ]
            found[path] = tuple(unquote(text) if is_encoded else text for text in texts)
    return found
