"""`secondary_index_…`: the record keys of each value of a column."""

from collections.abc import Collection, Mapping
from typing import ClassVar, Final

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.index_definitions import IndexDefinition, secondary_index_definition
from pyhudi.format.metadata_groups import RECORD_INDEX, SECONDARY_INDEX_PREFIX
from pyhudi.format.metadata_keys import KeyHashing
from pyhudi.metadata.changed_groups import ChangedGroup
from pyhudi.metadata.changes import InitialPartition
from pyhudi.metadata.derive_action import SecondaryTask, secondary_keys_of
from pyhudi.metadata.index_changes import secondary_change
from pyhudi.metadata.index_facts import SecondaryIndex, can_be_secondary
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind
from pyhudi.metadata.kinds.record_index import has_global
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import (
    GLOBAL_RECORD_INDEX_OPTION,
    SECONDARY_COLUMN_OPTION,
    SECONDARY_OPTION,
    IndexSettings,
)

_SECOND_VERSION_FROM: Final = 9


class SecondaryKind(IndexKind):
    """It leads to record keys, whose rows a global record index finds.

    Keys that are only unique within partitions would share their entries.
    """

    name: ClassVar[str] = "secondary_index"
    prefixes: ClassVar[tuple[str, ...]] = (SECONDARY_INDEX_PREFIX,)
    request_names: ClassVar[tuple[str, ...]] = ("secondary_index",)
    is_of_columns: ClassVar[bool] = True

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.secondary

    def option(self, settings: IndexSettings) -> str:
        return SECONDARY_OPTION

    def wanted(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: int
    ) -> Mapping[str, str]:
        return dict.fromkeys(_wanted_columns(settings, definitions), SECONDARY_COLUMN_OPTION)

    def refuse_taken_names(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: int
    ) -> None:
        for name, column in _wanted_columns(settings, definitions).items():
            other = definitions.get(name)
            if other is not None and other.source_fields != (column,):
                raise Invalid(
                    f"hoodie.index.name='{name}': expected a name that no other index has, found one of the column "
                    f"{', '.join(other.source_fields)}; give the index of '{column}' another"
                )

    def may_be_built(self, settings: IndexSettings, present: Collection[str]) -> bool:
        if RECORD_INDEX not in present or settings.partitioned_record_index:
            raise Invalid(
                f"{SECONDARY_COLUMN_OPTION}: expected a global record index beside a secondary index; "
                f"set {GLOBAL_RECORD_INDEX_OPTION}=true"
            )
        return True

    def falls_with(self, dropped: Collection[str], present: Collection[str]) -> bool:
        return RECORD_INDEX in dropped

    def definition(self, contents: IndexContents, partition: str) -> IndexDefinition:
        columns = _wanted_columns(contents.settings, contents.stored_definitions())
        if partition not in columns:
            raise Invalid(f"index '{partition}': expected a definition of it, or its column in the options")
        return _definition(contents, partition, columns[partition], named_by=SECONDARY_COLUMN_OPTION)

    def requested_partition(self, request: IndexRequest) -> str:
        return f"{SECONDARY_INDEX_PREFIX}{request.index_name()}"

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition:
        if not has_global(ready, contents.stored_definitions()):
            raise Invalid(
                f"{request.what}: expected a global record index, which finds the rows of its keys; "
                f"build '{RECORD_INDEX}' first"
            )
        partition = self.requested_partition(request)
        return _definition(contents, partition, request.columns[0], named_by=f"{request.what}: columns")

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Memory: all keys."""
        assert definition is not None
        is_second = definition.is_second_version
        index = SecondaryIndex(partition, definition.source_fields[0], is_second_version=is_second)
        reading = contents.reading()
        groups = [ChangedGroup(s.partition, s.file_id, None, s, True) for s in contents.slices]
        found = contents.readers.run(secondary_keys_of, [SecondaryTask(reading, group, index) for group in groups])
        none = pa.array([], pa.string())
        keys = pa.concat_arrays([none, *(after for _, after in found)])
        change = secondary_change(partition, none, keys, table_version=contents.table_version)
        hashing = KeyHashing.SECONDARY_PREFIX if is_second else KeyHashing.WHOLE
        counts: dict[str | None, int] = {None: contents.settings.group_count(len(keys), "global")}
        return InitialPartition(partition, [change], counts, hashing)

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.group_count(sum(contents.estimate_rows().values()), "global")}


def _wanted_columns(settings: IndexSettings, definitions: Mapping[str, IndexDefinition]) -> dict[str, str]:
    """Metadata partition -> column of the secondary indexes that the options ask for.

    An index that a column has already is that one, whatever it is called. Seen: 1.2.0 calls a new one by
    `hoodie.index.name`, or else by its column, behind the prefix where that is not part of the name.
    """
    if settings.secondary is False:
        return {}
    defined = {
        one.source_fields[0]: name
        for name, one in definitions.items()
        if name.startswith(SECONDARY_INDEX_PREFIX) and len(one.source_fields) == 1
    }
    found = {}
    for column in settings.secondary_columns:
        short = (settings.secondary_name or column).removeprefix(SECONDARY_INDEX_PREFIX)
        found[defined.get(column, f"{SECONDARY_INDEX_PREFIX}{short}")] = column
    return found


def _definition(contents: IndexContents, partition: str, column: str, *, named_by: str) -> IndexDefinition:
    """Raises: Invalid for a column that cannot have a secondary index. `named_by`: what named the column."""
    snapshot = contents.snapshot
    if not can_be_secondary(snapshot.schema, column):
        have = ", ".join(snapshot.schema.names) or "no column yet"
        raise Invalid(
            f"{named_by}='{column}': expected a column of text, whole numbers or dates "
            f"of table '{snapshot.config.name}', which has {have}"
        )
    version = "V2" if contents.table_version >= _SECOND_VERSION_FROM else "V1"
    return secondary_index_definition(partition.removeprefix(SECONDARY_INDEX_PREFIX), column, version)
