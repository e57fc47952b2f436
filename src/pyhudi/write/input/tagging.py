"""Looking keys up before a write: which index, in which partitions, and what its answer means."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from pyhudi.errors import Invalid, Unsupported
from pyhudi.executor import Executor
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.index.base_files import BaseFileIndex
from pyhudi.index.bloom import BloomSearch
from pyhudi.index.bloom_metadata import key_statistics
from pyhudi.index.choice import FileLookupType, choose_index, is_global_index
from pyhudi.index.compacting import CompactingIndex
from pyhudi.index.hits import Index
from pyhudi.index.own.lookup import OwnLookup
from pyhudi.index.own.protocol import find_index as find_own_index
from pyhudi.index.record_index import RecordIndex, record_index_missing
from pyhudi.merge.rules import MergeMode, MergeRules
from pyhudi.metadata.store.indexes import MetadataIndexes, open_indexes
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.merged_slice import SliceReader
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.pending import read_planned_logs
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import CountedInput, InputSpec, Operation, TaggedInput, Tagging
from pyhudi.write.place.plan import WorkloadProfile
from pyhudi.write.settings import WriteSettings

log = logging.getLogger("pyhudi")


def keys_for(operation: Operation, keys: KeySpec, settings: WriteSettings) -> KeySpec:
    """How the input of an operation spells its keys. A delete by a global index asks for no partition.

    Spec: format/indexes.md section 2: such a delete goes to wherever its key lies. A key generator of the user's may
    make keys of partition columns too, so it gets them.
    """
    is_anywhere = operation is Operation.DELETE and settings.has_global_index and not keys.own_generator
    return replace(keys, partition_by=()) if is_anywhere else keys


def settles_partitions(operation: Operation, spec: InputSpec, settings: WriteSettings) -> bool:
    """Whether rows of one key in several partitions are settled against each other before they are looked up. Pure.

    Seen: 1.0.2 does so before it asks a global index, when it combines at all.
    """
    return _reaches_out(operation, spec, settings) and settings.combine_before_upsert


def refuse_unfit_index(config: TableConfig, settings: WriteSettings, *, is_bucketed: bool) -> None:
    """Raises: Invalid for an index of the user's that is not registered, or that the table cannot have."""
    if not settings.index_class:
        return
    find_own_index(settings.index_class)
    if is_bucketed:
        raise Invalid(
            f"option {settings.index_said}: table '{config.name}' places rows by bucket: expected no other index; "
            "leave the option out"
        )


def refuse_moving_parts(rules: MergeRules, settings: WriteSettings, *, table_name: str) -> None:
    """Refuse a global index where a row is made of two: one of them may lie in another partition, and would be left.

    Raises: Unsupported.
    """
    if settings.has_global_index and not rules.wins_whole:
        raise Unsupported(
            f"upsert into table '{table_name}': {settings.index_said} with rules of merging that "
            "make one row of two: expected an index by partition (SIMPLE, BLOOM), as a row that moves to another "
            "partition would lose what is stored of it"
        )


def tagging_of_table(
    snapshot: Snapshot,
    operation: Operation,
    spec: InputSpec,
    settings: WriteSettings,
    counts: Mapping[str, int],
    stored: SliceCatalog,
    executor: Executor,
) -> Tagging:
    """What the settings and the table say about looking keys up, with what reading logs takes.

    `counts`: rows by partition. `stored`: gets the slices that the index is to be asked about, if keys are looked up; a
    record index brings in those that it finds.

    Of an insert that drops stored keys, and of a global index, the answer depends on what logs have deleted; of every
    index of base files on the logs that pending compactions take. One get for each of those.
    """
    config, (index, moves) = snapshot.config, find_index(snapshot, settings, executor)
    if isinstance(index, RecordIndex | OwnLookup):
        index = replace(index, bring=stored.bring_groups)
    elif looks_keys_up(operation, settings) and index.is_global:
        stored.bring_all()
    elif looks_keys_up(operation, settings):
        stored.bring(counts)

    tagging = Tagging(
        index=index,
        ordering=spec.carried_ordering,
        compares_stored=bool(spec.carried_ordering) and config.merge_mode is MergeMode.EVENT_TIME,
        moves=_reaches_out(operation, spec, settings) and moves,
        settles=settles_partitions(operation, spec, settings),
        drops_stored=operation is Operation.INSERT and looks_keys_up(operation, settings),
        as_written=snapshot.as_written,
        stored=snapshot.schema,
    )

    logs = log_reading(snapshot)
    if logs is None:
        return tagging
    reader = SliceReader(snapshot.schema_with_meta, logs)
    if index.is_exact:
        return replace(tagging, reader=reader)
    planned = read_planned_logs(snapshot.storage, snapshot.timeline)
    index = CompactingIndex(index, planned, reader) if planned else index
    return replace(tagging, index=index, reader=reader, planned=planned)


def find_index(snapshot: Snapshot, settings: WriteSettings, executor: Executor) -> tuple[Index, bool]:
    """The index that a write asks, and whether by it rows follow their partition column.

    A record index that is not ready, or of the other kind, is none: base files are searched instead, with a log line.
    Requests: none for an index of base files; for others the metadata table's properties and timeline.
    """
    if settings.index_class:
        return OwnLookup.of(find_own_index(settings.index_class), snapshot), settings.updates_partition_path
    kind = settings.index_type
    assert kind != "BUCKET"
    match kind:
        case "RECORD_INDEX" | "GLOBAL_RECORD_LEVEL_INDEX" | "RECORD_LEVEL_INDEX":
            indexes = _open_indexes(snapshot, settings, executor)
            is_global = is_global_index(kind)
            why_not = record_index_missing(indexes, is_global=is_global)
            if indexes is not None and not why_not:
                return RecordIndex(indexes, is_global), settings.updates_partition_path
            stand_in: FileLookupType = "GLOBAL_SIMPLE" if is_global else "SIMPLE"
            log.warning("%s: index %s: %s; %s looks keys up instead", snapshot.config.name, kind, why_not, stand_in)
            return choose_index(
                stand_in, snapshot.as_written, prunes_by_range=False
            ), settings.fallback_updates_partition_path
        case "BLOOM" | "GLOBAL_BLOOM" if settings.bloom_uses_metadata:
            indexes = _open_indexes(snapshot, settings, executor)
            search = BloomSearch(
                settings.bloom_prunes_by_range, key_statistics(indexes), as_written=snapshot.as_written
            )
            return BaseFileIndex(search, is_global_index(kind)), settings.updates_partition_path
        case "SIMPLE" | "GLOBAL_SIMPLE" | "BLOOM" | "GLOBAL_BLOOM":
            index = choose_index(kind, snapshot.as_written, prunes_by_range=settings.bloom_prunes_by_range)
            return index, settings.updates_partition_path
        case _:
            assert_never(kind)


def _open_indexes(snapshot: Snapshot, settings: WriteSettings, executor: Executor) -> MetadataIndexes | None:
    """What the metadata table holds; None where there is none, or it is about to go."""
    if not settings.metadata_enabled:
        return None
    return open_indexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone, executor=executor)


def _reaches_out(operation: Operation, spec: InputSpec, settings: WriteSettings) -> bool:
    """Whether a row may meet its key in another partition than its own."""
    return settings.has_global_index and operation is Operation.UPSERT and bool(spec.keys.partition_by)


def looks_keys_up(operation: Operation, settings: WriteSettings) -> bool:
    """Whether the input's keys matter: an insert asks for them only to drop or refuse those that are stored."""
    return operation.is_tagged or (operation is Operation.INSERT and settings.insert_duplicates != "none")


def tag_input(counted: CountedInput, stored: SliceCatalog, tagging: Tagging) -> TaggedInput | None:
    """Look the input's keys up; None where there is nothing to look them up in, so that all are new."""
    if not tagging.index.is_exact:
        _refuse_keys_in_logs(stored)
    may_be_stored = bool(stored) or tagging.index.is_exact  # which brings in what it finds
    return counted.tag(stored, tagging) if may_be_stored or tagging.settles else None


def workload(operation: Operation, counted: CountedInput, tagged: TaggedInput | None) -> WorkloadProfile:
    """What the input asks for. Rows of a delete whose keys are not stored ask for nothing."""
    profile = WorkloadProfile(counted.counts, {}) if tagged is None else tagged.profile
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
