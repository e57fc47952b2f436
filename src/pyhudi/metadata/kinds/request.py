"""What `build_index` is asked for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.errors import Invalid
from pyhudi.versions import NEW_TABLE_VERSION, VERSIONS, TableVersion

_NAME = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """`columns`: of column statistics those to keep them of, none: the first ones; of a secondary index the one; of an
    index on an `expression` the one that it is of, if any is named. `name`: of the latter two; None: their column's.
    `options`: of the call and the table.
    """

    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    expression: str | None = None
    table_version: TableVersion = VERSIONS[NEW_TABLE_VERSION]
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """The call, for messages."""
        return f"build_index('{self.kind}')"

    def index_name(self) -> str:
        """The name of an index of one column. Raises: Invalid where that is not told."""
        if len(self.columns) != 1 and (self.expression is None or self.columns or self.name is None):
            raise Invalid(f"{self.what}: expected one column, found {', '.join(self.columns) or 'none'}")
        name = self.name if self.name is not None else self.columns[0]
        if not _NAME.fullmatch(name):
            raise Invalid(f"index name '{name}': expected letters, digits and underscores")
        return name

    def refuse_name(self) -> None:
        """Raises: Invalid for a name, where a table has one such index."""
        if self.name is not None:
            raise Invalid(f"build_index('{self.kind}', name='{self.name}'): expected no name; there is one such index")

    def refuse_columns(self) -> None:
        """Raises: Invalid for columns, where an index has none of its own."""
        if self.columns:
            raise Invalid(f"{self.what}: expected no columns, found {', '.join(self.columns)}")
