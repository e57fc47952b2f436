"""The index of docs/extending.md: locations of record keys in a SQLite file. `tests/unit/index/own` holds the two
equal.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyhudi import IndexOf, LocationChanges


class SqliteIndex:
    """Locations of record keys in a SQLite file, of any number of tables."""

    def __init__(self, path: str, table: IndexOf) -> None:
        self.uri = table.uri
        self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.db.execute("CREATE TABLE IF NOT EXISTS states (uri TEXT PRIMARY KEY, state TEXT)")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS locations (uri TEXT, record_key TEXT, partition_path TEXT, file_id TEXT, "
            "instant TEXT, PRIMARY KEY (uri, record_key)) WITHOUT ROWID"
        )
        self.db.execute("CREATE INDEX IF NOT EXISTS by_group ON locations (uri, file_id)")

    def state(self) -> str | None:
        found = self.db.execute("SELECT state FROM states WHERE uri = ?", [self.uri]).fetchone()
        return found[0] if found else None

    def locate(self, keys: pa.Table) -> pa.Table:
        self.db.execute("CREATE TEMP TABLE IF NOT EXISTS asked (record_key TEXT PRIMARY KEY)")
        self.db.execute("BEGIN")
        self.db.execute("DELETE FROM asked")
        self.db.executemany("INSERT OR IGNORE INTO asked VALUES (?)", rows_of(keys.select(["record_key"])))
        found = self.db.execute(
            "SELECT record_key, partition_path, file_id, instant FROM asked JOIN locations USING (record_key) "
            "WHERE uri = ?",
            [self.uri],
        ).fetchall()
        self.db.execute("COMMIT")
        names = ["record_key", "partition_path", "file_id", "instant"]
        columns = zip(*found, strict=True) if found else [[]] * len(names)
        return pa.table([pa.array(column, pa.string()) for column in columns], names=names)

    def update(self, changes: LocationChanges) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.executemany(
                "DELETE FROM locations WHERE uri = ? AND file_id = ?",
                ((self.uri, file_id) for _, file_id in rows_of(changes.emptied)),
            )
            self.db.executemany(
                "DELETE FROM locations WHERE uri = ? AND record_key = ? AND file_id = ?",
                ((self.uri, key, file_id) for key, _, file_id in rows_of(changes.gone)),
            )
            for batch in changes.located:
                self.db.executemany(
                    "INSERT OR REPLACE INTO locations VALUES (?, ?, ?, ?, ?)",
                    ((self.uri, *row) for row in rows_of(batch)),
                )
            self.db.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", [self.uri, changes.state])
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def clear(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("DELETE FROM locations WHERE uri = ?", [self.uri])
        self.db.execute("DELETE FROM states WHERE uri = ?", [self.uri])
        self.db.execute("COMMIT")

    def close(self) -> None:
        self.db.close()


def rows_of(data: pa.Table | pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows, for a driver that takes nothing else."""
    return zip(*(column.to_pylist() for column in data.columns), strict=True)
