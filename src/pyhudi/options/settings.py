"""Options that have an effect: settings classes read them."""

from pyhudi.options.entries import COMES_LATER, Entry, Kind, each

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
)
_OTHER_OPERATIONS = (
    *(
        "bootstrap",
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
    **each(
        (f"hoodie.write.lock.{name}" for name in (
            "client.num_retries", "client.wait_time_ms_between_retry", "max_wait_time_ms_between_retry", "num_retries",
            "wait_time_ms", "wait_time_ms_between_retry", "heartbeat_interval_ms",
            "dynamodb.billing_mode", "dynamodb.endpoint_url", "dynamodb.partition_key", "dynamodb.read_capacity",
            "dynamodb.region", "dynamodb.table", "dynamodb.table_creation_timeout", "dynamodb.write_capacity",
            "filesystem.expire", "filesystem.path",
            "hivemetastore.database", "hivemetastore.table", "hivemetastore.uris",
            "storage.renew.interval.secs", "storage.validity.timeout.secs",
            "zookeeper.base_path", "zookeeper.connection_timeout_ms", "zookeeper.lock_key",
            "zookeeper.session_timeout_ms", "zookeeper.url",
        )),
        Entry(Kind.SETTING),
    ),
}  # fmt: skip

_LOGS: dict[str, Entry] = {
    **each(
        (
            "hoodie.logfile.max.size", "hoodie.logfile.data.block.max.size", "hoodie.write.record.positions",
            "hoodie.merge.small.file.group.candidates.limit",
        ),
        Entry(Kind.SETTING),
    ),
    "hoodie.logfile.data.block.format": Entry(Kind.SETTING, accepts=("", "avro", "parquet", "hfile")),
}  # fmt: skip

_BUCKETS: dict[str, Entry] = {
    **each(("hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field"), Entry(Kind.SETTING)),
    "hoodie.index.bucket.engine": Entry(Kind.SETTING, accepts=("SIMPLE", "CONSISTENT_HASHING")),
    "hoodie.bucket.index.partition.expressions": Entry(
        Kind.PROMISE, accepts=("",), note="every partition has as many buckets; " + COMES_LATER
    ),
    "hoodie.storage.layout.partitioner.class": Entry(
        Kind.PROMISE, accepts=("", "SparkBucketIndexPartitioner"), note="classes of Java cannot be called"
    ),
}

_COMPACTION: dict[str, Entry] = {
    **each(
        (
            "hoodie.compact.inline", "hoodie.compact.schedule.inline", "hoodie.compact.inline.max.delta.commits",
            "hoodie.compact.inline.max.delta.seconds", "hoodie.compaction.target.io",
            "hoodie.compaction.logfile.size.threshold", "hoodie.compaction.logfile.num.threshold",
            "hoodie.compaction.daybased.target.partitions", "hoodie.compaction.partition.path.regex",
            "hoodie.log.compaction.enable", "hoodie.log.compaction.inline", "hoodie.log.compaction.blocks.threshold",
        ),
        Entry(Kind.SETTING),
    ),
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

_OWN: dict[str, Entry] = each(("pyhudi.memory.max.bytes", "pyhudi.memory.spill.folder"), Entry(Kind.SETTING))
"""Options of pyhudi's own, which Apache Hudi does not have."""

SETTINGS: dict[str, Entry] = {
    **_OWN,
    **each(
        (
            "hoodie.parquet.compression.codec", "hoodie.parquet.max.file.size",
            "hoodie.parquet.small.file.limit",
            "hoodie.parquet.block.size", "hoodie.parquet.page.size",
            "hoodie.copyonwrite.record.size.estimate",
            "hoodie.parquet.bloom.filter.enabled", "hoodie.bloom.index.filter.type",
            "hoodie.index.bloom.num_entries",
            "hoodie.index.bloom.fpp", "hoodie.bloom.index.filter.dynamic.max.entries",
            "hoodie.bloom.index.prune.by.ranges", "hoodie.bloom.index.update.partition.path",
            "hoodie.bloom.index.use.metadata", "hoodie.simple.index.update.partition.path",
            "hoodie.record.index.update.partition.path",
            "hoodie.combine.before.insert", "hoodie.combine.before.upsert", "hoodie.combine.before.delete",
            "hoodie.metadata.enable", "hoodie.metadata.compact.max.delta.commits",
            "hoodie.metadata.log.compaction.enable", "hoodie.metadata.log.compaction.blocks.threshold",
            "hoodie.metadata.index.column.stats.enable", "hoodie.metadata.index.partition.stats.enable",
            "hoodie.metadata.index.column.stats.column.list",
            "hoodie.metadata.index.column.stats.max.columns.to.index",
            "hoodie.metadata.index.column.stats.file.group.count",
            "hoodie.metadata.index.partition.stats.file.group.count",
            "hoodie.metadata.index.expression.enable", "hoodie.metadata.index.expression.file.group.count",
            "hoodie.metadata.index.expression.column", "hoodie.metadata.index.expression.options",
            "hoodie.expression.index.type",
            "hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.index.bloom.filter.file.group.count",
            "hoodie.metadata.global.record.level.index.enable",
            "hoodie.metadata.global.record.level.index.min.filegroup.count",
            "hoodie.metadata.global.record.level.index.max.filegroup.count",
            "hoodie.metadata.record.level.index.enable",
            "hoodie.metadata.record.level.index.min.filegroup.count",
            "hoodie.metadata.record.level.index.max.filegroup.count",
            "hoodie.metadata.record.index.growth.factor", "hoodie.metadata.record.index.max.filegroup.size",
            "hoodie.metadata.index.secondary.enable", "hoodie.metadata.index.secondary.column", "hoodie.index.name",
            "hoodie.metadata.index.async", "hoodie.metadata.index.check.timeout.seconds",
            "hoodie.write.set.null.for.missing.columns", "hoodie.datasource.write.reconcile.schema",
            "hoodie.datasource.write.new.columns.nullable",
            "hoodie.archive.automatic", "hoodie.archive.beyond.savepoint",
            "hoodie.archive.block.on.latest.clean.ectr", "hoodie.keep.max.commits", "hoodie.keep.min.commits",
            "hoodie.timeline.compaction.batch.size",
            "hoodie.timeline.compaction.target.file.max.bytes", "hoodie.timeline.manifest.retained.versions",
            "hoodie.allow.empty.commit", "hoodie.datasource.write.insert.drop.duplicates",
            "hoodie.datasource.write.partitions.to.delete", "hoodie.write.commit.callback.on",
            "hoodie.write.commit.callback.http.url", "hoodie.write.commit.callback.http.timeout.seconds",
            "hoodie.write.commit.callback.http.api.key", "hoodie.write.commit.callback.http.custom.headers",
            "hoodie.datasource.write.commitmeta.key.prefix",
            "hoodie.client.heartbeat.interval_in_ms", "hoodie.client.heartbeat.tolerable.misses",
            "hoodie.clean.automatic", "hoodie.clean.commits.retained", "hoodie.clean.hours.retained",
            "hoodie.clean.fileversions.retained", "hoodie.clean.trigger.max.commits",
            "hoodie.clean.incremental.enabled", "hoodie.clean.max.commits.to.clean", "hoodie.table.services.enabled",
        ),
        Entry(Kind.SETTING),
    ),
    **each(
        (
            "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
            "hoodie.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.timestamp.scalar.time.unit",
            "hoodie.keygen.timebased.input.dateformat",
            "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex",
            "hoodie.keygen.timebased.input.timezone", "hoodie.keygen.timebased.output.dateformat",
            "hoodie.keygen.timebased.output.timezone", "hoodie.keygen.timebased.timezone",
        ),
        Entry(Kind.SETTING),
    ),
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
    **_COMPACTION,
    "hoodie.clean.policy": Entry(
        Kind.SETTING, accepts=("KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS")
    ),
    "hoodie.datasource.insert.dup.policy": Entry(Kind.SETTING, accepts=("none", "drop", "fail")),
    "hoodie.bulkinsert.sort.mode": Entry(Kind.SETTING, accepts=_SORT_MODES),
    "hoodie.datasource.write.operation": Entry(
        Kind.SETTING, accepts=_OPERATIONS, knows=_OTHER_OPERATIONS, note=COMES_LATER
    ),
}  # fmt: skip
