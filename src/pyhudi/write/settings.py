"""How writes are carried out: options as typed settings, each with unit, default and reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from pyhudi.by_content import ByContent
from pyhudi.errors import Invalid, is_secret
from pyhudi.index.choice import IndexType, LookupType, RecordLookupType, is_global_index
from pyhudi.index.own.protocol import find_index
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.options.names import INDEX_CLASS
from pyhudi.options.resolve import COMMIT_METADATA_PREFIX
from pyhudi.options.table_facts import short_class_name
from pyhudi.options.values import OptionValues, choice, count, flag, rate
from pyhudi.table.facts.bucket_facts import BUCKET_OPTIONS
from pyhudi.txn.action.session import HeartbeatSettings
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.write.handles.compression import Compression, chosen_compression
from pyhudi.write.input.key_settings import KeySettings
from pyhudi.write.log_settings import LogSettings
from pyhudi.write.orc_settings import OrcSettings

BloomKind: TypeAlias = Literal["DYNAMIC_V0", "SIMPLE"]
ConcurrencyMode: TypeAlias = Literal[
    "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"
]
DuplicatePolicy: TypeAlias = Literal["none", "drop", "fail"]
OperationName: TypeAlias = Literal[
    "upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition"
]
ConflictStrategy: TypeAlias = Literal[
    "",
    "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
    "org.apache.hudi.client.transaction.BucketIndexConcurrentFileWritesConflictResolutionStrategy",
    "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy",
]
UpdateStrategy: TypeAlias = Literal[
    "SparkRejectUpdateStrategy", "SparkAllowUpdateStrategy", "SparkConsistentBucketDuplicateUpdateStrategy"
]
SortMode: TypeAlias = Literal[
    "NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"
]

CONCURRENCY_MODE: Final = "hoodie.write.concurrency.mode"
METADATA_LOG_BLOCKS_MIN: Final = 5
"""A log of the metadata table with this many blocks is worth a log compaction, unless an option says otherwise."""


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings of writes. Sizes are bytes. Where no reason is given, the default is Apache Hudi's.

    `operation`: what `df.write.format("hudi")` does; the methods of a table say it themselves.
    `compression`: zstd, about as fast as snappy and a third smaller; "none" as pyarrow spells uncompressed.
    `file_size_max_bytes`: 120 MiB, a file that one task rewrites in seconds.
    `small_file_limit_bytes`: smaller files take new rows first; 0: no file does.
    `row_group_size_bytes`: counts Arrow bytes in memory, so it bounds what a writer holds.
    `record_size_estimate_bytes`: of a stored row, until an earlier commit tells the size.
    `bloom_entries`: the keys that each filter has room for; None: the keys of its file, where Apache Hudi takes 60,000.
    `bloom_false_positive_rate`: 1e-9, so that a hit nearly always is one.
    `combine_before_insert`: off, because an insert promises no uniqueness and then needs no sort.
    `keeps_doubled_inserts`: if off, an insert of a stored key updates its row. Apache Hudi then looks only at the keys
    of the files that it fills up.
    `insert_duplicates`: rows whose key is stored already are kept, dropped, or an error.
    `index_class`: the name of an index of the user's own, which is asked instead of `index_type`; empty: none.
    `bucket_options`: what the options say of the index and its buckets, to be compared with the table
    (`facts_of_table`).
    `bloom_prunes_by_range`: Bloom indexes pass over files whose key range does not fit.
    `bloom_uses_metadata`: Bloom indexes ask the metadata table for ranges and filters, if it has them.
    `updates_partition_path`: with a global index, a row whose key lies in another partition moves from there to its own
    partition. If off, as with a record index by default, the row stays where the key lies.
    `fallback_updates_partition_path`: the same, for the index that is asked while there is no record index.
    `fills_missing_columns`: columns that the input lacks become null. If off, they are an error: one may be misspelled.
    `drops_missing_columns`: the table loses columns that the input lacks, unless they are filled.
    `makes_new_columns_nullable`: new columns may be null, even if the input says never: old rows have no value there.
    `metadata_deltacommits_max`: the metadata table is compacted after this many delta commits of its own.
    `metadata_log_blocks_min`: a log of the metadata table with this many blocks is log compacted; None: none is.
    `heartbeat_misses`: beats of `heartbeat_interval_ms` that may fail before others count the writer as dead.
    `lock_wait_ms`: how long to wait for one holder of the table; 0: not at all. A dead holder lets go at once on local
    disk, so one that holds the table for long is at work: it builds an index, or makes the metadata table. One wait
    covers all tries, so Apache Hudi's counts of retries have no effect.
    `conflict_retries`: how often a write is planned anew, from the same input, when another writer was in its way.
    Three, where Apache Hudi has none: the input is there already, and a retry holds the table, so it succeeds.
    `conflict_strategy`: by which class of Apache Hudi writes conflict, by file group or by bucket. If empty, writes to
    one file group may both succeed where their keys differ, and new rows are no conflict where their keys differ.
    `PreferWriter...` is by file group, and writes go before clusterings.
    `concurrency_mode`: the first two are one here, as several writers are always safe. The third appends to the logs
    of a bucket whatever others append meanwhile.
    `detects_conflicts_early`: before its work, a write looks whether a running write changes one of its file groups.
    `clustering_updates`: what becomes of a write that changes a file group of a pending clustering: it is refused, or
    it goes on, and the clustering gives way. `ends_clusterings`: a write that goes on takes such a clustering off the
    timeline at once; if off, the next run of clusterings does.
    `lock`: what is held beside the table's own guard; None: nothing. Options of the caller say so, which `from_options`
    cannot tell from those of the table.
    `logs`: how merge-on-read tables are written. `orc`: how ORC base files are.
    `keys`: how partition paths and keys are made of times.
    `commit_metadata_prefix`: options that begin with it go into the commit; empty: none do.
    """

    operation: OperationName = choice("hoodie.datasource.write.operation", "upsert", get_args(OperationName))
    compression: Compression = "zstd"
    file_size_max_bytes: int = count("hoodie.parquet.max.file.size", 125_829_120)
    small_file_limit_bytes: int = count("hoodie.parquet.small.file.limit", 104_857_600, least=0)
    row_group_size_bytes: int = count("hoodie.parquet.block.size", 125_829_120)
    page_size_bytes: int = count("hoodie.parquet.page.size", 1_048_576)
    record_size_estimate_bytes: int = count("hoodie.copyonwrite.record.size.estimate", 1_024)
    bloom_enabled: bool = flag("hoodie.parquet.bloom.filter.enabled", True)
    bloom_kind: BloomKind = choice("hoodie.bloom.index.filter.type", "DYNAMIC_V0", get_args(BloomKind))
    bloom_entries: int | None = None
    bloom_false_positive_rate: float = rate("hoodie.index.bloom.fpp", 1e-9)
    bloom_entries_max: int = count("hoodie.bloom.index.filter.dynamic.max.entries", 100_000)
    combine_before_insert: bool = flag("hoodie.combine.before.insert", False)
    keeps_doubled_inserts: bool = flag("hoodie.merge.allow.duplicate.on.inserts", True)
    combine_before_upsert: bool = flag("hoodie.combine.before.upsert", True)
    combine_before_delete: bool = flag("hoodie.combine.before.delete", True)
    insert_duplicates: DuplicatePolicy = "none"
    index_type: IndexType = choice("hoodie.index.type", "SIMPLE", get_args(IndexType))
    index_class: str = ""
    bucket_options: Mapping[str, str] = field(default_factory=dict)
    bloom_prunes_by_range: bool = flag("hoodie.bloom.index.prune.by.ranges", True)
    bloom_uses_metadata: bool = flag("hoodie.bloom.index.use.metadata", False)
    updates_partition_path: bool = True
    fallback_updates_partition_path: bool = True
    bulk_insert_sort_mode: SortMode = choice("hoodie.bulkinsert.sort.mode", "NONE", get_args(SortMode))
    metadata_enabled: bool = flag("hoodie.metadata.enable", True)
    metadata_deltacommits_max: int = count("hoodie.metadata.compact.max.delta.commits", 10)
    metadata_log_blocks_min: int | None = None
    allow_empty_commit: bool = flag("hoodie.allow.empty.commit", True)
    fills_missing_columns: bool = False
    drops_missing_columns: bool = False
    makes_new_columns_nullable: bool = flag("hoodie.datasource.write.new.columns.nullable", False)
    commit_metadata_prefix: str = "_"
    keys: KeySettings = field(default_factory=KeySettings)
    logs: LogSettings = field(default_factory=LogSettings)
    orc: OrcSettings = field(default_factory=OrcSettings)
    indexes: IndexSettings = field(default_factory=IndexSettings)
    heartbeat_interval_ms: int = count("hoodie.client.heartbeat.interval_in_ms", 60_000)
    heartbeat_misses: int = count("hoodie.client.heartbeat.tolerable.misses", 2, least=0)
    lock_wait_ms: int = count("hoodie.write.lock.wait_time_ms", 60_000, least=0)
    conflict_retries: int = count("hoodie.write.num.retries.on.conflict.failures", 3, least=0)
    conflict_strategy: ConflictStrategy = choice(
        "hoodie.write.lock.conflict.resolution.strategy", "", get_args(ConflictStrategy)
    )
    concurrency_mode: ConcurrencyMode = choice(CONCURRENCY_MODE, "SINGLE_WRITER", get_args(ConcurrencyMode))
    detects_conflicts_early: bool = flag("hoodie.write.concurrency.early.conflict.detection.enable", False)
    clustering_updates: UpdateStrategy = "SparkRejectUpdateStrategy"
    ends_clusterings: bool = flag("hoodie.clustering.rollback.pending.replacecommit.on.conflict", False)
    lock: LockSettings | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "WriteSettings":
        """The settings that the options ask for. Options of other concerns are left alone.

        Raises: Invalid for a value that cannot be one, naming the option, what was found and expected.
        """
        return _known.get(tuple(options.items()), lambda: cls._from_options(options))

    @classmethod
    def _from_options(cls, options: Mapping[str, str]) -> "WriteSettings":
        o, d = OptionValues(options), cls()
        metadata_blocks = o.count("hoodie.metadata.log.compaction.blocks.threshold", METADATA_LOG_BLOCKS_MIN)

        declared = o.fields(cls)
        index_type = declared["index_type"]
        return cls(
            **declared,
            compression=chosen_compression(o, d.compression),
            bloom_entries=_asked(o, "hoodie.index.bloom.num_entries"),
            insert_duplicates=_insert_duplicates(o, d.insert_duplicates),
            index_class=(own := options.get(INDEX_CLASS, "").strip()),
            bucket_options={name: options[name] for name in BUCKET_OPTIONS if options.get(name, "").strip()},
            updates_partition_path=index_type == "BUCKET" or _moves(o, "GLOBAL_SIMPLE" if own else index_type),
            fallback_updates_partition_path=_moves(o, "GLOBAL_SIMPLE"),
            metadata_log_blocks_min=metadata_blocks if o.flag("hoodie.metadata.log.compaction.enable", False) else None,
            fills_missing_columns=any(o.flag(name, d.fills_missing_columns) for name in _FILL_MISSING),
            drops_missing_columns=o.flag(_DROP_MISSING, d.drops_missing_columns),
            commit_metadata_prefix=options.get(COMMIT_METADATA_PREFIX, d.commit_metadata_prefix),
            clustering_updates=_updates(options.get(_CLUSTERING_UPDATES, ""), d.clustering_updates),
            keys=KeySettings.from_options(options),
            logs=LogSettings.from_options(options),
            orc=OrcSettings.from_options(options),
            indexes=IndexSettings.from_options(options),
        )

    @property
    def heartbeat(self) -> HeartbeatSettings:
        return HeartbeatSettings(self.heartbeat_interval_ms, self.heartbeat_misses)

    @property
    def has_global_index(self) -> bool:
        """Whether a record key names one row of the whole table, and not only of its partition."""
        return find_index(self.index_class).is_global if self.index_class else is_global_index(self.index_type)

    @property
    def moves_rows(self) -> bool:
        """Whether a row whose partition column changes moves to its new partition, whichever index is asked."""
        falls_back = not self.index_class and self.index_type in _RECORD_INDEXES
        moves = self.updates_partition_path and (self.fallback_updates_partition_path or not falls_back)
        return self.has_global_index and moves

    @property
    def index_said(self) -> str:
        """The index as options state it."""
        name, text = (INDEX_CLASS, self.index_class) if self.index_class else ("hoodie.index.type", self.index_type)
        return f"{name}='{text}'"

    @property
    def is_non_blocking(self) -> bool:
        return self.concurrency_mode == "NON_BLOCKING_CONCURRENCY_CONTROL"

    @property
    def passes_clusterings(self) -> bool:
        """Whether a write may change a file group of a pending clustering, which then gives way."""
        prefers_writers = self.conflict_strategy.endswith(".PreferWriterConflictResolutionStrategy")
        return prefers_writers or self.clustering_updates == "SparkAllowUpdateStrategy"

    @property
    def doubles_rows(self) -> bool:
        """Whether a row of a bucket that a pending resizing moves is also logged for the bucket that it comes to."""
        return self.clustering_updates == "SparkConsistentBucketDuplicateUpdateStrategy"

    def commit_metadata(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options that go into the commit's extra metadata, under their whole names, except secret ones."""
        prefix = self.commit_metadata_prefix
        return {n: text for n, text in options.items() if prefix and n.startswith(prefix) and not is_secret(n)}


_known: ByContent[tuple[tuple[str, str], ...], WriteSettings] = ByContent(2 << 20, lambda texts, _: 300 * len(texts))
"""Settings of options that were seen before."""

_CLUSTERING_UPDATES = "hoodie.clustering.updates.strategy"
_DROP_DUPLICATES = "hoodie.datasource.write.insert.drop.duplicates"
_RECORD_INDEXES = get_args(RecordLookupType)
_DROP_MISSING = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
_FILL_MISSING = ("hoodie.write.set.null.for.missing.columns", "hoodie.datasource.write.reconcile.schema")


def _updates(class_name: str, default: UpdateStrategy) -> UpdateStrategy:
    given = OptionValues({_CLUSTERING_UPDATES: short_class_name(class_name)})
    return given.choice(_CLUSTERING_UPDATES, default, get_args(UpdateStrategy))


def _asked(options: OptionValues, name: str) -> int | None:
    """A count, if one is asked for."""
    return options.count(name, 1) if options.texts.get(name, "").strip() else None


def _moves(options: OptionValues, index: LookupType) -> bool:
    """Whether rows follow their partition column, as the option of the index's family says."""
    family = "record" if index in _RECORD_INDEXES else index.removeprefix("GLOBAL_").lower()
    return options.flag(f"hoodie.{family}.index.update.partition.path", family != "record")


def _insert_duplicates(options: OptionValues, default: DuplicatePolicy) -> DuplicatePolicy:
    """What an insert does with keys that are stored, by the older flag and the newer policy."""
    policy_name = "hoodie.datasource.insert.dup.policy"
    policy = options.choice(policy_name, default, get_args(DuplicatePolicy))

    if not options.flag(_DROP_DUPLICATES, False):
        return policy
    if policy == "fail":
        raise Invalid(
            f"option '{_DROP_DUPLICATES}'='true': contradicts option '{policy_name}'='fail'; expected one of them"
        )
    return "drop"
