"""Partitions within partitions: a write makes none.

Apache Hudi's listing of the storage goes no deeper once a folder is a partition. It finds no row of the partition `a/b`
in a table that has the partition `a`, too.
"""

from collections.abc import Collection, Iterator

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.listing import StorageListing, is_partition_metafile
from pyhudi.table.view.snapshot import Snapshot

_WAY_OUT = (
    "change the values, or create the table with properties={'hoodie.datasource.write.partitionpath.urlencode': 'true'}"
)


def refuse_nested_partitions(snapshot: Snapshot, paths: Collection[str], keys: KeySpec, schema: pa.Schema) -> None:
    """Refuse new partitions that lie above or below others. `paths`: of partitions without file groups, which rows are
    about to get. `schema`: the columns of `keys`.

    Partitions that lie so already stay as they are. Requests: none where the values of the columns cannot have a `/`;
    else what the snapshot's listing needs to tell its partitions. Without a metadata table one or two for each path,
    and a listing of all partitions only where these find a folder above or below.
    Raises: Invalid, naming both paths.
    """
    if not paths or not snapshot.config.may_nest_partitions or not _may_have_slash(keys, schema):
        return
    rooms, depth_min = set(paths), len(keys.partition_by) if not keys.own_generator else 1
    if snapshot.listing.source == StorageListing.source and not _is_doubtful(snapshot.storage, rooms, depth_min):
        return

    known = set(snapshot.listing.partitions())
    new = rooms - known
    if "" in new:
        raise Invalid(
            f"table '{snapshot.config.name}': expected a partition path for each row, as the table has the partition "
            f"columns {', '.join(snapshot.config.partition_by)}; found the empty path, the table's own folder; "
            "mend the key generator"
        )
    way_out = "mend the key generator" if keys.own_generator else _WAY_OUT
    _refuse_within(new, known | new, f"table '{snapshot.config.name}'", way_out=way_out)


def _refuse_within(new: set[str], every: set[str], table: str, *, way_out: str) -> None:
    if not new or len({path.count("/") for path in every}) == 1:
        return
    for path in sorted(every):
        for above in _folders_above(path):
            if above in every and not new.isdisjoint((path, above)):
                raise Invalid(
                    f"{table}: partition path '{path}' lies below partition '{above}': expected folders "
                    "apart from one another, for Apache Hudi looks for no partition within another one, and would lose "
                    f"the rows; {way_out}"
                )


def _may_have_slash(keys: KeySpec, schema: pa.Schema) -> bool:
    """Whether paths differ in their number of folders."""
    if keys.own_generator or keys.has_slashed_dates:
        return True
    return not keys.is_url_encoded and any(
        _is_text(schema.field(name).type) for name in keys.partition_by if name not in keys.time_based
    )


def _is_doubtful(storage: Storage, paths: set[str], depth_min: int) -> bool:
    """Whether a path is the table's own folder, has a folder below it, or is below a partition."""
    if "" in paths or any(next(iter(storage.list_folders(path)), None) is not None for path in paths):
        return True
    above = {folder for path in paths for folder in _folders_above(path) if folder.count("/") + 1 >= depth_min}
    return not above.isdisjoint(paths) or any(
        is_partition_metafile(file.path) for folder in above for file in storage.list(folder)
    )


def _folders_above(path: str) -> Iterator[str]:
    """The folders that a folder lies in, without the table's own. Example: of `a/b/c` these are `a/b` and `a`."""
    while path := path.rpartition("/")[0]:
        yield path


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))
