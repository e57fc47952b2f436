"""Options that settings classes read."""

from pyhudi.model.option_entries import COMES_LATER, Entry, Kind, each

_INDEXES = (
    *("BUCKET", "RECORD_INDEX", "RECORD_LEVEL_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"),
    *("INMEMORY", "HBASE", "FLINK_STATE"),
)
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

SETTINGS: dict[str, Entry] = {
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
            "hoodie.simple.index.update.partition.path",
            "hoodie.combine.before.insert", "hoodie.combine.before.upsert", "hoodie.combine.before.delete",
            "hoodie.metadata.enable", "hoodie.metadata.compact.max.delta.commits",
            "hoodie.write.set.null.for.missing.columns", "hoodie.datasource.write.reconcile.schema",
            "hoodie.datasource.write.new.columns.nullable",
            "hoodie.archive.automatic", "hoodie.archive.beyond.savepoint",
            "hoodie.archive.block.on.latest.clean.ectr", "hoodie.keep.max.commits", "hoodie.keep.min.commits",
            "hoodie.compact.inline.max.delta.commits", "hoodie.timeline.compaction.batch.size",
            "hoodie.timeline.compaction.target.file.max.bytes", "hoodie.timeline.manifest.retained.versions",
            "hoodie.allow.empty.commit", "hoodie.datasource.write.insert.drop.duplicates",
            "hoodie.datasource.write.partitions.to.delete", "hoodie.write.commit.callback.on",
            "hoodie.write.commit.callback.http.url", "hoodie.write.commit.callback.http.timeout.seconds",
            "hoodie.write.commit.callback.http.api.key", "hoodie.write.commit.callback.http.custom.headers",
            "hoodie.datasource.write.commitmeta.key.prefix",
            "hoodie.client.heartbeat.interval_in_ms", "hoodie.client.heartbeat.tolerable.misses",
            "hoodie.clean.automatic", "hoodie.clean.commits.retained", "hoodie.clean.hours.retained",
            "hoodie.clean.fileversions.retained", "hoodie.clean.trigger.max.commits",
            "hoodie.clean.incremental.enabled", "hoodie.clean.max.commits.to.clean",
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
        Kind.PROMISE, ("", "HoodieDateTimeParser"), note="classes of Java cannot be called"
    ),
    "hoodie.index.type": Entry(
        Kind.SETTING, ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"), _INDEXES, "other indexes come later"
    ),
    "hoodie.clean.policy": Entry(
        Kind.SETTING, ("KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS")
    ),
    "hoodie.datasource.insert.dup.policy": Entry(Kind.SETTING, ("none", "drop", "fail")),
    "hoodie.bulkinsert.sort.mode": Entry(Kind.SETTING, _SORT_MODES),
    "hoodie.datasource.write.operation": Entry(Kind.SETTING, _OPERATIONS, _OTHER_OPERATIONS, COMES_LATER),
}  # fmt: skip
