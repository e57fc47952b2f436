"""The definition of a new index, as the options of a write or the arguments of `build_index` ask for it."""

from collections.abc import Collection

from pyhudi.errors import Invalid
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.record_index import asks_partitioned
from pyhudi.metadata.kinds.registry import get_kind, requested_kind
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.write.metadata import by_name


def define_wanted(contents: IndexContents, partition: str) -> IndexDefinition | None:
    """The entry of `index.json` that the options give an index; None for an index without an entry.

    Up to version 6 there is no such file, and the options of a write name the columns.
    Raises: Invalid for an index that the options do not describe, or that the table's columns do not allow;
    Unsupported for an index that tables of this version do not have, or that this release does not build.
    """
    if not contents.table_version.has_index_definitions:
        is_partitioned = bool(contents.settings.partitioned_record_index)
        by_name.refuse_indexes(contents.snapshot.config, (partition,), is_partitioned=is_partitioned)
        return None
    return get_kind(partition).definition(contents, partition)


def define_requested(request: IndexRequest, contents: IndexContents, ready: Collection[str]) -> IndexDefinition | None:
    """The definition of a requested index, checked against the table; None for a kind without definitions.

    `ready`: the partitions that the metadata table has.
    Raises: Invalid for a column that is missing or whose values the index cannot hold, and where another index is
    needed that is not there.
    """
    kind, config = requested_kind(request), contents.snapshot.config
    if config.version.has_index_definitions:
        return kind.requested_definition(request, contents, ready)

    if request.columns:
        raise Invalid(
            f"{request.what}: expected no columns, for tables of version {config.version} do not store "
            f"them, found {', '.join(request.columns)}; set hoodie.metadata.index.column.stats.column.list instead"
        )

    partition = kind.requested_partition(request)
    by_name.refuse_indexes(config, (partition,), is_partitioned=asks_partitioned(request))
    return None
