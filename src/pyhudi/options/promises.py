"""Options that ask for a promise. This release keeps the promise for some values only."""

from pyhudi.options.entries import COMES_LATER, MERGE_STRATEGIES, Entry, Kind, each, empty, off

_MERGERS = (
    "HoodieAvroRecordMerger",
    "HoodieSparkRecordMerger",
    "DefaultSparkRecordMerger",
    "OverwriteWithLatestMerger",
)
_SYNC = (
    "a metastore is told by Spark DataFrames that are written to a path in a session with enableHiveSupport(), and by "
    "every write to a table's name there; no other write tells one"
)
_CLUSTERING = (
    "nothing runs beside a write; hoodie.clustering.inline clusters after writes, HudiTable.cluster() when called"
)
_MANAGER = "services run in the process that asks for them; there is no manager to hand them to"
_INDEX_BUILDS = "filters of the metadata table are asked for by hoodie.metadata.index.bloom.filter.enable"
_EVOLUTION = "the table's own schema counts, with what an input adds and widens; HudiTable.alter changes columns"

PROMISES: dict[str, Entry] = {
    **off(_CLUSTERING, "hoodie.clustering.async.enabled"),
    **off(_MANAGER, "hoodie.table.service.manager.enabled", "hoodie.metadata.table.service.manager.enabled"),
    **off(_INDEX_BUILDS, "hoodie.metadata.bloom.filter.enable"),
    **off(_SYNC, "hoodie.datasource.hive_sync.enable", "hoodie.datasource.meta.sync.enable"),
    **off(
        _EVOLUTION, "hoodie.avro.schema.external.transformation",
    ),
    **empty(
        _EVOLUTION, "hoodie.write.schema", "hoodie.write.partial.update.schema"
    ),
    # Before version 8 the id says nothing about the mode: Apache Hudi 0.15 stores the same id for every payload class.
    **each(
        ("hoodie.compaction.record.merger.strategy", "hoodie.datasource.write.record.merger.strategy"),
        Entry(Kind.PROMISE, accepts=MERGE_STRATEGIES, note=COMES_LATER),
    ),
    "hoodie.write.record.merge.custom.implementation.classes": Entry(
        Kind.PROMISE, accepts=("", *_MERGERS), note="register a merger of your own in Python: register_merger"
    ),
    **empty(
        "classes of Java cannot be called", "hoodie.bulkinsert.user.defined.partitioner.class",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        "hoodie.precommit.validators",
        "hoodie.prewrite.validators",
        "hoodie.client.init.callback.classes",
        "hoodie.parquet.write.config.injector.class",
    ),
    "hoodie.fileid.prefix.provider.class": Entry(
        Kind.PROMISE, accepts=("", "RandomFileIdPrefixProvider"), note="classes of Java cannot be called"
    ),
    **empty("files are not encrypted; " + COMES_LATER, "parquet.crypto.factory.class"),
    **off("files that a table was bootstrapped from are never deleted", "hoodie.clean.delete.bootstrap.base.file"),
    "hoodie.clean.trigger.strategy": Entry(
        Kind.PROMISE, accepts=("NUM_COMMITS",), note="commits are what triggers a clean"
    ),
    **empty(
        "every partition is cleaned", "hoodie.clean.partition.filter.regex", "hoodie.clean.partition.filter.selected"
    ),
    "hoodie.parquet.outputtimestamptype": Entry(
        Kind.PROMISE, accepts=("TIMESTAMP_MICROS",), knows=("TIMESTAMP_MILLIS", "INT96"),
        note="timestamps are stored in microseconds"
    ),
    "hoodie.table.format": Entry(Kind.PROMISE, accepts=("", "native"), note="no other table format is written"),
    "hoodie.write.commit.callback.class": Entry(
        Kind.PROMISE, accepts=("", "HoodieWriteCommitHttpCallback"),
        note="a callback goes by HTTP, or is the call's on_commit",
    ),
    **empty(
        "insert_overwrite replaces the partitions of its rows; delete_partition empties others",
        "hoodie.static.overwrite.partition.paths",
    ),
    "hoodie.auto.commit": Entry(Kind.PROMISE, accepts=("true",), knows=("false",), note="a write always commits"),
    **off(
        COMES_LATER, "hoodie.errortable.enable",
        "hoodie.allow.operation.metadata.field", "hoodie.table.multiple.base.file.formats.enable",
        "hoodie.metaserver.enabled",
        "hoodie.write.track.event.time.watermark", "hoodie.metadata.streaming.write.enabled",
    ),
}  # fmt: skip
