"""Building the indexes of the metadata table within a write, as its options ask for.

An index is built from the data files as they stand, before the write begins: readers find it once the table's
properties name it. Spec: format/metadata-table.md sections 3 and 7.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.format.index_definitions import IndexDefinition
from pyhudi.format.instants import INIT_INSTANT
from pyhudi.format.metadata_groups import (
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from pyhudi.metadata.expression_index import is_alike, is_expression_index
from pyhudi.metadata.table import open_metadata_table
from pyhudi.model.versions import TableVersion
from pyhudi.services.index_contents import IndexContents, secondary_partitions, wanted_expression
from pyhudi.table.snapshot import Snapshot
from pyhudi.write.index_settings import IndexSettings
from pyhudi.write.metadata.creation import create_partition

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class IndexBuilder:
    """Builds indexes of one table, under its guard. `snapshot`: the table, on which nothing else happens meanwhile.

    `executor`, `readers`: as of `IndexContents`.
    """

    snapshot: Snapshot
    settings: IndexSettings
    executor: Executor
    readers: Executor
    epoch_ms: int
    issue_instant: Callable[[], str]
    confirm: Callable[[], None]

    def build(self, partition: str, kept: IndexDefinition | None = None) -> IndexDefinition | None:
        """Build a partition of the metadata table. Gives its entry of `index.json`, if it has one there.

        `kept`: the entry of an index that was lost; None: as the options say.
        Leftovers of an earlier attempt go first. Memory: of record and secondary indexes all keys; the Bloom filters.
        """
        contents = IndexContents(self.snapshot, self.settings, self.executor, self.readers)
        definition = kept or contents.definition(partition)
        create_partition(
            open_metadata_table(self.snapshot.storage, self.snapshot.zone),
            contents.initial(partition, definition, requested=self.snapshot.timeline.newest or INIT_INSTANT),
            data_timeline=self.snapshot.timeline, epoch_ms=self.epoch_ms, executor=self.executor,
            issue_instant=self.issue_instant, confirm=self.confirm,
        )  # fmt: skip
        log.info("%s: built the metadata partition '%s'", self.snapshot.storage.location.uri, partition)
        return definition


def wanted_partitions(
    settings: IndexSettings,
    present: Iterable[str],
    definitions: Mapping[str, IndexDefinition],
    table_version: TableVersion,
) -> tuple[set[str], set[str]]:
    """The metadata partitions to build, and to drop, for a table that has these, or is getting them. `definitions`: of
    its indexes.

    Raises: Invalid for a secondary index without a global record index, which finds the rows of its record keys: keys
    that are only unique within partitions would share their entries. Invalid for a name that an index of another
    column has.
    """
    have = set(present)
    asked = settings.switched
    if settings.secondary is False:
        asked |= {name: False for name in have if name.startswith(SECONDARY_INDEX_PREFIX)}
    else:
        secondary = secondary_partitions(settings, definitions)
        _check_names(secondary, definitions)
        asked |= dict.fromkeys(secondary, True)
    if settings.expressions is False:
        asked |= {name: False for name in have if is_expression_index(name)}
    expression = wanted_expression(settings, definitions, table_version)
    if expression is not None:
        _check_expression(expression, definitions)
        asked[expression.name] = True
    build = {name for name, is_wanted in asked.items() if is_wanted and name not in have}
    drop = {name for name, is_wanted in asked.items() if is_wanted is False and name in have}
    of_columns = {name for name in have | build if name.startswith(SECONDARY_INDEX_PREFIX)}
    has_global = RECORD_INDEX in (have | build) - drop and not settings.partitioned_record_index
    if of_columns & build and not has_global:
        raise Invalid(
            "hoodie.metadata.index.secondary.column: expected a global record index beside a secondary index; "
            "set hoodie.metadata.global.record.level.index.enable=true"
        )
    if COLUMN_STATS not in (have | build) - drop:
        build -= {PARTITION_STATS}
    drop |= dependents(drop, have)
    return set() if settings.is_async else build, drop


def _check_expression(wanted: IndexDefinition, definitions: Mapping[str, IndexDefinition]) -> None:
    of = definitions.get(wanted.name)
    if of is not None and not is_alike(of, wanted):
        raise Invalid(
            f"hoodie.metadata.index.expression.column: expected a name that no other index has, found '{of.name}' on "
            f"{of.function} of {', '.join(of.source_fields)}; give the new one another in hoodie.index.name"
        )


def _check_names(secondary: Mapping[str, str], definitions: Mapping[str, IndexDefinition]) -> None:
    for name, column in secondary.items():
        of = definitions.get(name)
        if of is not None and of.source_fields != (column,):
            raise Invalid(
                f"hoodie.index.name='{name}': expected a name that no other index has, found one of the column "
                f"{', '.join(of.source_fields)}; give the index of '{column}' another"
            )


def dependents(dropped: Collection[str], present: Collection[str]) -> set[str]:
    """The indexes that cannot be without those that go: what partitions have is made of what their files have, and
    secondary indexes lead to record keys, whose rows the record index finds.
    """
    found = {PARTITION_STATS} & set(present) if COLUMN_STATS in dropped or COLUMN_STATS not in present else set()
    if RECORD_INDEX in dropped:
        found |= {name for name in present if name.startswith(SECONDARY_INDEX_PREFIX)}
    return found
