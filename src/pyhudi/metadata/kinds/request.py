"""What `build_index` is asked for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.errors import Invalid
from pyhudi.options.told_names import listed
from pyhudi.versions import NEW_TABLE_VERSION, VERSIONS, TableVersion

_NAME = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """`columns`: for column statistics the columns to keep them of, empty: the first ones; for a secondary index its
    one column; for an index on an `expression` that one's column, if it is named. `name`: of a secondary index, or of
    an index on an expression; None: the column's name. `options`: of the call and the table.
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
        if not self.columns and self.expression is not None and self.name is None:
            raise Invalid(
                f"{self.what}: expected a name for the index on {self.expression!r}, found none: give name='…', or "
                "columns='…' for the name of its column"
            )
        if len(self.columns) != 1 and (self.expression is None or self.columns):
            found = listed(self.columns) if self.columns else "none: columns='…'"
            raise Invalid(f"{self.what}: expected one column, found {found}")
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
