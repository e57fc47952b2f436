"""Looking keys up before a write: which index, in which partitions, and what its answer means."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyhudi.errors import Unsupported
from pyhudi.format.keys import KeySpec
from pyhudi.index.choice import choose_index
from pyhudi.index.compacting import CompactingIndex
from pyhudi.merge.rules import MergeMode
from pyhudi.table.config import TableConfig
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.merged_slice import SliceReader
from pyhudi.table.pending import read_planned_logs
from pyhudi.table.read_plan import log_reading
from pyhudi.table.snapshot import Snapshot
from pyhudi.write.plan import WorkloadProfile
from pyhudi.write.settings import WriteSettings
from pyhudi.write.source import InputSpec, Operation, Tagging, WriteSource


def keys_for(operation: Operation, keys: KeySpec, settings: WriteSettings) -> KeySpec:
    """How the input of an operation spells its keys. A delete by a global index asks for no partition.

    Spec: format/indexes.md section 2: such a delete goes to wherever its key lies.
    """
    is_anywhere = operation is Operation.DELETE and settings.has_global_index
    return replace(keys, partition_by=()) if is_anywhere else keys


def plan_tagging(operation: Operation, config: TableConfig, spec: InputSpec, settings: WriteSettings) -> Tagging:
    """What the settings and the table say about looking keys up. Pure.

    Seen: 1.0.2 settles the rows of a key over all partitions before it asks a global index, when it combines at all.
    """
    assert settings.index_type != "BUCKET"
    reaches_out = settings.has_global_index and operation is Operation.UPSERT and bool(spec.keys.partition_by)
    ordering = tuple(name for name in config.ordering if name in spec.schema.names)
    return Tagging(
        index=choose_index(settings.index_type, prunes_by_range=settings.bloom_prunes_by_range),
        ordering=ordering,
        compares_stored=bool(ordering) and config.merge_mode is MergeMode.EVENT_TIME,
        moves=reaches_out and settings.updates_partition_path,
        settles=reaches_out and settings.combine_before_upsert,
        drops_stored=operation is Operation.INSERT and looks_keys_up(operation, settings),
    )


def tagging_of_table(snapshot: Snapshot, operation: Operation, spec: InputSpec, settings: WriteSettings) -> Tagging:
    """As `plan_tagging`, with what reading logs takes: an index looks into base files only.

    Of an insert that drops stored keys, and of a global index, the answer depends on what logs have deleted; of every
    index on the logs that pending compactions take. One get for each of those.
    """
    tagging = plan_tagging(operation, snapshot.config, spec, settings)
    logs = log_reading(snapshot)
    if logs is None:
        return tagging
    reader = SliceReader(snapshot.schema_with_meta, logs)
    planned = read_planned_logs(snapshot.storage, snapshot.timeline)
    index = CompactingIndex(tagging.index, planned, reader) if planned else tagging.index
    return replace(tagging, index=index, reader=reader, planned=planned)


def looks_keys_up(operation: Operation, settings: WriteSettings) -> bool:
    """Whether the input's keys matter: an insert asks for them only to drop or refuse those that are stored."""
    return operation.is_tagged or (operation is Operation.INSERT and settings.insert_duplicates != "none")


def find_slices(
    snapshot: Snapshot, operation: Operation, counts: Mapping[str, int], settings: WriteSettings
) -> dict[str, list[FileSlice]]:
    """The newest slices of the existing partitions in which a write may find its keys or leave its rows."""
    existing = snapshot.listing.partitions()
    is_anywhere = looks_keys_up(operation, settings) and settings.has_global_index
    return {partition: snapshot.slices(partition) for partition in existing if is_anywhere or partition in counts}


def tag_input(
    source: WriteSource,
    operation: Operation,
    counts: Mapping[str, int],
    slices: Mapping[str, list[FileSlice]],
    tagging: Tagging,
    *,
    looks_up: bool,
) -> WorkloadProfile:
    """What the input asks for, once its keys were looked up where the write does that (`looks_keys_up`)."""
    stored = [piece for of in slices.values() for piece in of]
    if looks_up:
        _refuse_keys_in_logs(stored)
    if not looks_up or not (stored or tagging.settles):
        return WorkloadProfile({} if operation is Operation.DELETE else counts, {})
    profile = source.tag(stored, tagging)
    return WorkloadProfile({}, profile.updates) if operation is Operation.DELETE else profile


def _refuse_keys_in_logs(slices: Sequence[FileSlice]) -> None:
    """Raises: Unsupported for a file group whose new keys went to its log: these indexes look into base files."""
    for piece in slices:
        if piece.base_file is None:
            raise Unsupported(
                f"file group '{piece.file_id}' in partition '{piece.partition}' has logs only, and this index looks "
                "keys up in base files: expected a base file; compact the table, or write with the index that made it "
                "(hoodie.index.type)"
            )
