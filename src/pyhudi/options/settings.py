"""Options that have an effect and a list of values. Every other option that a settings class reads is declared there.

Some of their values are refused in this release, or are known names of what it has not.
"""

from pyhudi.options.entries import COMES_LATER, Entry, Kind

_INDEXES = (
    *("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET"),
    *("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"),
)
_OTHER_INDEXES = ("INMEMORY", "HBASE", "FLINK_STATE")
_SORT_MODES = (
    *("NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"),
)
_OPERATIONS = (
    *("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition"),
    "bootstrap",
)
_OTHER_OPERATIONS = (
    *(
        "upsert_prepped",
        "insert_prepped",
        "bulk_insert_prepped",
        "delete_prepped",
        "compact",
        "cluster",
        "alter_schema",
    ),
)

_LOCK_PROVIDERS = (
    *("InProcessLockProvider", "FileSystemBasedLockProvider", "StorageBasedLockProvider"),
    *("ZookeeperBasedLockProvider", "ZookeeperBasedImplicitBasePathLockProvider"),
    *("DynamoDBBasedLockProvider", "DynamoDBBasedImplicitPartitionKeyLockProvider", "HiveMetastoreBasedLockProvider"),
)

_LOCKS: dict[str, Entry] = {
    "hoodie.write.lock.provider": Entry(
        Kind.SETTING, accepts=("", *_LOCK_PROVIDERS), knows=("NoopLockProvider",),
        note="leave it out: the table's own guard is held with no setting",
    ),
    "hoodie.write.lock.conflict.resolution.strategy": Entry(
        Kind.SETTING,
        accepts=(
            "", *(f"{name}ConcurrentFileWritesConflictResolutionStrategy" for name in ("Simple", "BucketIndex")),
            "PreferWriterConflictResolutionStrategy",
        ),
        note="leave it out: writes of different keys then do not conflict",
    ),
}  # fmt: skip

_LOGS: dict[str, Entry] = {
    "hoodie.logfile.data.block.format": Entry(Kind.SETTING, accepts=("", "avro", "parquet", "hfile")),
}  # fmt: skip

_BUCKETS: dict[str, Entry] = {
    "hoodie.index.bucket.engine": Entry(Kind.SETTING, accepts=("SIMPLE", "CONSISTENT_HASHING")),
    "hoodie.bucket.index.partition.rule.type": Entry(
        Kind.PROMISE, accepts=("", "regex", "REGEX"), note="Apache Hudi knows no other rules"
    ),
    "hoodie.storage.layout.partitioner.class": Entry(
        Kind.PROMISE, accepts=("", "SparkBucketIndexPartitioner"), note="classes of Java cannot be called"
    ),
}

_BOOTSTRAP: dict[str, Entry] = {
    "hoodie.bootstrap.mode.selector": Entry(
        Kind.SETTING,
        accepts=(
            "", "MetadataOnlyBootstrapModeSelector", "FullRecordBootstrapModeSelector", "BootstrapRegexModeSelector",
        ),
        note="selectors of your own cannot be called",
    ),
    "hoodie.bootstrap.mode.selector.regex": Entry(Kind.SETTING),
    "hoodie.bootstrap.mode.selector.regex.mode": Entry(Kind.SETTING, accepts=("", "METADATA_ONLY", "FULL_RECORD")),
    "hoodie.bootstrap.partitionpath.translator.class": Entry(
        Kind.SETTING,
        accepts=("", "IdentityBootstrapPartitionPathTranslator", "DecodedBootstrapPartitionPathTranslator"),
        note="translators of your own cannot be called",
    ),
}  # fmt: skip

_COMPACTION: dict[str, Entry] = {
    "hoodie.compact.inline.trigger.strategy": Entry(
        Kind.SETTING,
        accepts=("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME"),
    ),
    "hoodie.compaction.strategy": Entry(
        Kind.SETTING,
        accepts=(
            "", "LogFileSizeBasedCompactionStrategy", "LogFileNumBasedCompactionStrategy",
            "BoundedIOCompactionStrategy", "UnBoundedCompactionStrategy", "DayBasedCompactionStrategy",
            "BoundedPartitionAwareCompactionStrategy", "UnBoundedPartitionAwareCompactionStrategy",
            "PartitionRegexBasedCompactionStrategy",
        ),
        note="strategies of your own cannot be called",
    ),
}  # fmt: skip

_CLUSTERING: dict[str, Entry] = {
    "hoodie.clustering.plan.strategy.class": Entry(
        Kind.SETTING,
        accepts=(
            "", "SparkSizeBasedClusteringPlanStrategy", "JavaSizeBasedClusteringPlanStrategy",
            "SparkRecentDaysClusteringPlanStrategy", "JavaRecentDaysClusteringPlanStrategy",
            "SparkSelectedPartitionsClusteringPlanStrategy", "SparkConsistentBucketClusteringPlanStrategy",
            "SparkSingleFileSortPlanStrategy", "SparkStreamCopyClusteringPlanStrategy",
        ),
        knows=(
            "CommitBasedClusteringPlanStrategy",
            "FlinkSizeBasedClusteringPlanStrategy", "FlinkConsistentBucketClusteringPlanStrategy",
            "FlinkSkipSingleFileClusteringPlanStrategy",
        ),
        note="strategies of your own cannot be called; " + COMES_LATER,
    ),
    "hoodie.clustering.execution.strategy.class": Entry(
        Kind.SETTING,
        accepts=(
            "", "SparkSortAndSizeExecutionStrategy", "JavaSortAndSizeExecutionStrategy",
            "SparkConsistentBucketClusteringExecutionStrategy", "SingleSparkJobConsistentHashingExecutionStrategy",
            "SparkSingleFileSortExecutionStrategy", "SparkBinaryCopyClusteringExecutionStrategy",
            "SparkStreamCopyClusteringExecutionStrategy",
        ),
        note="strategies of your own cannot be called",
    ),
    "hoodie.clustering.plan.partition.filter.mode": Entry(
        Kind.SETTING, accepts=("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING")
    ),
    "hoodie.clustering.plan.strategy.file.slices.sort.by": Entry(
        Kind.SETTING, accepts=("", "SIZE", "INSTANT_TIME", "SIZE,INSTANT_TIME", "INSTANT_TIME,SIZE")
    ),
    "hoodie.clustering.updates.strategy": Entry(
        Kind.SETTING, accepts=("", "SparkRejectUpdateStrategy", "SparkAllowUpdateStrategy",
                               "SparkConsistentBucketDuplicateUpdateStrategy"),
        knows=("FlinkConsistentBucketUpdateStrategy",),
        note="strategies of your own cannot be called; SparkConsistentBucketDuplicateUpdateStrategy does what Flink's "
             "does",
    ),
    "hoodie.layout.optimize.strategy": Entry(Kind.SETTING, accepts=("linear", "z-order", "zorder", "hilbert")),
}  # fmt: skip

SETTINGS: dict[str, Entry] = {
    "hoodie.keygen.datetime.parser.class": Entry(
        Kind.PROMISE, accepts=("", "HoodieDateTimeParser"), note="classes of Java cannot be called"
    ),
    "hoodie.index.type": Entry(
        Kind.SETTING, accepts=_INDEXES, knows=_OTHER_INDEXES,
        note="the others have no storage of their own, or belong to other engines",
    ),
    **_LOCKS,
    **_LOGS,
    **_BUCKETS,
    **_BOOTSTRAP,
    **_COMPACTION,
    **_CLUSTERING,
    "hoodie.clean.policy": Entry(
        Kind.SETTING, accepts=("KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS")
    ),
    "hoodie.clean.failed.writes.policy": Entry(Kind.SETTING, accepts=("EAGER", "LAZY", "NEVER")),
    "hoodie.partition.ttl.management.strategy.type": Entry(
        Kind.SETTING, accepts=("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME")
    ),
    "hoodie.partition.ttl.strategy.class": Entry(
        Kind.SETTING, accepts=("", "KeepByTimeStrategy", "KeepByCreationTimeStrategy"),
        note="strategies of your own cannot be called",
    ),
    "hoodie.datasource.insert.dup.policy": Entry(Kind.SETTING, accepts=("none", "drop", "fail")),
    "hoodie.bulkinsert.sort.mode": Entry(Kind.SETTING, accepts=_SORT_MODES),
    "hoodie.datasource.write.operation": Entry(
        Kind.SETTING, accepts=_OPERATIONS, knows=_OTHER_OPERATIONS, note=COMES_LATER
    ),
}  # fmt: skip
