"""The records in the timeline's files: commits, plans of services, and reports of services.

Fields are named as in Apache Hudi's Avro records (`org.apache.hudi.avro.model`), in snake case and in the records'
order. A field that holds an instant is called `requested`. A field that may be null in Avro may be None here, so that a
decoded value encodes to the same record.

Spec: format/timeline.md section 4.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

NEW_FILE_GROUP = "null"
"""The `prev_commit` of the first file of a file group: the text "null", not a null."""


COMPACTION = "COMPACT"
"""The operation that a compaction's commit states."""

LOG_COMPACTION = "LOG_COMPACT"
"""The operation that a log compaction's commit states."""

REWRITES = frozenset({COMPACTION, LOG_COMPACTION})
"""Operations that write existing rows anew and change no row."""

MOVES = frozenset({"CLUSTER"})
"""Operations that move rows to other file groups and change none."""

REPLACES = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"})
"""Operations that replace all file groups of partitions, by a replacecommit. Spec: format/actions.md section 4."""


@dataclass(frozen=True, slots=True)
class RuntimeStats:
    """Milliseconds that a write spent on scanning, creating and updating."""

    total_scan_time: int | None = 0
    total_create_time: int | None = 0
    total_upsert_time: int | None = 0


@dataclass(frozen=True, slots=True)
class WriteStat:
    """A data file that a write made or rewrote. The defaults are those of a base file in Apache Hudi.

    `path`: relative to the table. `prev_commit`: requested time of the base file before. The log fields (`log_version`
    to `log_files`) are None for a base file. Spec: format/actions.md section 1.1.
    """

    file_id: str | None = None
    path: str | None = None
    prev_commit: str | None = NEW_FILE_GROUP
    num_writes: int | None = 0
    num_deletes: int | None = 0
    num_update_writes: int | None = 0
    total_write_bytes: int | None = 0
    total_write_errors: int | None = 0
    partition_path: str | None = None
    total_log_records: int | None = 0
    total_log_files: int | None = None
    total_updated_records_compacted: int | None = 0
    num_inserts: int | None = 0
    total_log_blocks: int | None = 0
    total_corrupt_log_block: int | None = 0
    total_rollback_blocks: int | None = 0
    file_size_in_bytes: int | None = 0
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    cdc_stats: Mapping[str, int] | None = None
    prev_base_file: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    total_log_files_compacted: int | None = 0
    total_log_read_time_ms: int | None = 0
    total_log_size_compacted: int | None = 0
    temp_path: str | None = None
    num_updates: int | None = 0

    @property
    def is_log(self) -> bool:
        """Whether this describes a log file."""
        return self.log_version is not None or self.log_files is not None


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """What a write did. `partition_to_replace_file_ids`: set for replace commits only."""

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    operation_type: str | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    compacted: bool = False
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """An instant as rollbacks and restores name it."""

    requested: str
    action: str


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What a rollback removes from one file group. Paths are absolute.

    Spec: format/actions.md section 5.2.
    """

    partition_path: str
    file_id: str | None = ""
    latest_base_instant: str | None = ""
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    instant_to_rollback: InstantInfo | None
    rollback_requests: tuple[RollbackRequest, ...] = ()
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class RollbackPartitionMetadata:
    """What a rollback did to a partition. Paths are absolute. The maps are log file -> size in bytes."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] | None = field(default_factory=dict)
    log_files_from_failed_commit: Mapping[str, int] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    start_rollback_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    commits_rollback: tuple[str, ...]
    partition_metadata: Mapping[str, RollbackPartitionMetadata]
    version: int | None = 1
    instants_rollback: tuple[InstantInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore will roll back. `savepoint_to_restore`: requested time of the savepointed commit."""

    instants_to_rollback: tuple[InstantInfo, ...] = ()
    version: int | None = 2
    savepoint_to_restore: str | None = None


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """What a restore did. `rollbacks`: requested time of a rolled-back instant -> the rollback's reports."""

    start_restore_time: str
    time_taken_in_millis: int
    instants_to_rollback: tuple[str, ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata | None, ...]]
    version: int | None = 1
    restore_instant_info: tuple[InstantInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionInstant:
    """An instant with its state, as in a clean plan's earliest instant to retain."""

    requested: str
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class CleanFileInfo:
    """A file to be cleaned. The path is absolute."""

    file_path: str | None
    is_bootstrap_base_file: bool | None = False


@dataclass(frozen=True, slots=True)
class CleanerPlan:
    """Which files a clean will delete. Spec: format/actions.md section 7.5.

    Version 1 of the plan names files in `files_to_be_deleted_per_partition`, which later versions leave empty.
    """

    earliest_instant_to_retain: ActionInstant | None
    last_completed_commit: str
    policy: str
    files_to_be_deleted_per_partition: Mapping[str, tuple[str, ...]] | None = field(default_factory=dict)
    version: int | None = 2
    file_paths_to_be_deleted_per_partition: Mapping[str, tuple[CleanFileInfo, ...]] | None = field(default_factory=dict)
    partitions_to_be_deleted: tuple[str, ...] | None = ()
    extra_metadata: Mapping[str, str] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CleanPartitionMetadata:
    """What a clean did to a partition. Files are bare names."""

    partition_path: str
    policy: str
    delete_path_patterns: tuple[str, ...] = ()
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    is_partition_deleted: bool | None = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """What a clean did. `earliest_commit_to_retain` is empty if the policy has none."""

    start_clean_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    earliest_commit_to_retain: str
    last_completed_commit: str
    partition_metadata: Mapping[str, CleanPartitionMetadata]
    version: int | None = 2
    bootstrap_partition_metadata: Mapping[str, CleanPartitionMetadata] | None = field(default_factory=dict)
    extra_metadata: Mapping[str, str] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavepointPartitionMetadata:
    """The files that a savepoint protects in a partition, as bare names."""

    partition_path: str
    savepoint_data_file: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """What a savepoint protects. `savepointed_at`: milliseconds since 1970."""

    savepointed_by: str
    savepointed_at: int
    comments: str
    partition_metadata: Mapping[str, SavepointPartitionMetadata]
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class SliceInfo:
    """A file slice that a clustering rewrites. Paths are absolute."""

    data_file_path: str | None
    delta_file_paths: tuple[str, ...] | None
    file_id: str | None
    partition_path: str | None
    bootstrap_file_path: str | None = ""
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """File slices that are clustered together."""

    slices: tuple[SliceInfo, ...] = ()
    metrics: Mapping[str, float] | None = None
    num_output_file_groups: int | None = 1
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ServiceStrategy:
    """The Java class by which Apache Hudi carries out a plan, and its parameters."""

    class_name: str | None
    strategy_params: Mapping[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    input_groups: tuple[ClusteringGroup, ...] | None
    strategy: ServiceStrategy | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1
    preserve_hoodie_metadata: bool | None = None
    missing_schedule_partitions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RequestedReplaceMetadata:
    """What a replace commit or a clustering is about to do. All fields are None for an insert overwrite."""

    operation_type: str | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = None

    @property
    def input_groups(self) -> tuple[ClusteringGroup, ...]:
        """The groups of slices that the clustering plan rewrites. None without a plan."""
        return (self.clustering_plan.input_groups or ()) if self.clustering_plan else ()

    @property
    def file_groups(self) -> tuple[tuple[str, str], ...]:
        """(partition, file id) of each file group that the clustering plan rewrites."""
        return tuple((s.partition_path or "", s.file_id or "") for g in self.input_groups for s in g.slices)


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """A file slice to compact. Paths are bare names since plan version 2."""

    base_instant_time: str | None
    delta_file_paths: tuple[str, ...] | None
    data_file_path: str | None
    file_id: str | None
    partition_path: str | None
    metrics: Mapping[str, float] | None = None
    bootstrap_file_path: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a compaction or a log compaction will do. Spec: format/actions.md section 8."""

    operations: tuple[CompactionOperation, ...] | None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 2
    strategy: ServiceStrategy | None = None
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: tuple[str, ...] | None = None

    @property
    def file_groups(self) -> tuple[tuple[str, str], ...]:
        """(partition, file id) of each file group in the plan."""
        return tuple((o.partition_path or "", o.file_id or "") for o in self.operations or ())


@dataclass(frozen=True, slots=True)
class IndexPartitionInfo:
    """A partition of the metadata table to build, and the instant of the data table up to which to build it."""

    version: int | None = 1
    metadata_partition_path: str | None = None
    index_upto_instant: str | None = None
    extra_metadata: Mapping[str, str] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexPlan:
    version: int | None = 1
    index_partition_infos: tuple[IndexPartitionInfo, ...] | None = ()


@dataclass(frozen=True, slots=True)
class IndexCommitMetadata:
    version: int | None = 1
    operation_type: str | None = None
    index_partition_infos: tuple[IndexPartitionInfo, ...] | None = ()
