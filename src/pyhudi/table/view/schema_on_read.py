"""Tables whose columns were renamed, or dropped and added again, by schema-on-read evolution.

Their older files hold columns under the names of that time. Only the history of the schema tells which column is which.
"""

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.names import HOODIE, join
from pyhudi.format.schema.history import SchemaHistory, parse_history
from pyhudi.storage.protocol import Storage

LATEST_SCHEMA = "latest_schema"
"""The key under which a write to a table with such a history states its schema."""

_FOLDER = join(HOODIE, ".schema")
_SUFFIX = ".schemacommit"


def read_history(storage: Storage) -> SchemaHistory | None:
    """The schemas of a table. None if each column had one name at all times, and each name meant one column.

    One list request and one get. Raises: CorruptFile for a history that does not read.
    """
    found = _read_newest(storage)
    return None if found is None or found[1].renamed() is None else found[1]


def refuse_renamed_columns(storage: Storage) -> None:
    """Refuse to write to a table in which a column had two names, or a name meant two columns.

    Requests: as `read_history`. Raises: Unsupported, naming the column; CorruptFile for a history that does not read.
    """
    found = _read_newest(storage)
    renamed = None if found is None else found[1].renamed()
    if found is not None and renamed is not None:
        raise Unsupported(
            f"{storage.location.uri}/{found[0]}: column '{renamed}' was renamed, or dropped and added again, by "
            "schema-on-read evolution: this release reads such a table and does not write it, because each write has "
            "to carry the history on. Write with Apache Hudi"
        )


def _read_newest(storage: Storage) -> tuple[str, SchemaHistory] | None:
    files = [file.path for file in storage.list(_FOLDER) if file.path.endswith(_SUFFIX)]
    if not files:
        return None
    path = max(files)
    try:
        return path, parse_history(storage.get(path))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFile(path, 0, expected="a history of schemas as JSON", found=repr(error)) from error
