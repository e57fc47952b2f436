"""`files`: the list of the table's partitions and of their files. It is there as long as the metadata table."""

from typing import ClassVar

from pyhudi.errors import Bug
from pyhudi.format.index_definitions import IndexDefinition
from pyhudi.format.metadata_groups import FILES
from pyhudi.metadata.changes import InitialPartition
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind


class FilesKind(IndexKind):
    """Made with the metadata table, and dropped with it."""

    name: ClassVar[str] = FILES
    since: ClassVar[int] = 6

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        raise Bug("files: expected to be made with the metadata table, found a request to build it by itself")

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        raise Bug("files: expected to be made with the metadata table, found a request to build it by itself")
