"""The indexes of a table as rows."""

from dataclasses import dataclass

from pyhudi.api.table import HudiTable
from pyhudi.metadata.kinds.registry import LISTING
from pyhudi.metadata.store.indexes import read_definitions


@dataclass(frozen=True, slots=True)
class ShownIndex:
    """An index. `name`: its partition of the metadata table. `kind`: such as `column_stats`. `columns`: of which."""

    name: str
    kind: str
    columns: tuple[str, ...]


def read_indexes(table: HudiTable) -> list[ShownIndex]:
    """The indexes that readers use, but for the listing of files. One get."""
    snapshot = table._access.snapshot()
    definitions = read_definitions(snapshot.storage)
    found = []
    for name in snapshot.config.metadata_partitions:
        if name == LISTING:
            continue
        definition = definitions.get(name)
        is_named = definition is not None and definition.type != name
        kind = definition.type.lower() if definition is not None and is_named else name
        found.append(ShownIndex(name, kind, definition.source_fields if definition is not None and is_named else ()))
    return found
