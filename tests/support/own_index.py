"""Holds the SQLite index of tests against the table that it is of."""

from pyhudi import HudiTable, IndexOf
from tests.support.sqlite_index import SqliteIndex


def index_of(table: HudiTable, path: str) -> SqliteIndex:
    return SqliteIndex(path, IndexOf(table._access.storage.location.uri, table.name))


def assert_true(table: HudiTable, path: str) -> None:
    """The index has each key of the table where its row is, and no other."""
    index = index_of(table, path)
    known = index.db.execute(
        "SELECT record_key, partition_path, file_id FROM locations WHERE uri = ?", [index.uri]
    ).fetchall()
    index.close()
    names = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    stored = table.scan(columns=names).to_arrow()
    rows = zip(*(stored.column(name).to_pylist() for name in names), strict=True)
    assert sorted(known) == sorted((key, path, file.lstrip(".").partition("_")[0]) for key, path, file in rows)
