"""Options of which only the default is supported. Any other value asks for something else, and is refused.

Each line lists the values that pass: the defaults of Apache Hudi 0.15, 1.0 and 1.2, in upper or lower case.
"""

from pyhudi.options.entries import Entry, Kind

_JAVA = "classes of Java cannot be called"
_NO_MERGERS = "rows are merged by one code; register a merger of your own in Python: register_merger"
_OPERATION = "hoodie.datasource.write.operation names the operation of a write"
_READ_WHOLE = "a query merges the logs, or reads base files alone: hoodie.datasource.query.type=read_optimized"

REFUSED: dict[str, Entry] = {
    name: Entry(Kind.PROMISE, accepts=("", *accepts), note=note)
    for name, accepts, note in (
        # What a write does
        ("hoodie.datasource.overwrite.mode", (), "insert_overwrite replaces the partitions of its rows, "
         "insert_overwrite_table all"),
        ("hoodie.bulkinsert.overwrite.operation.type", (), _OPERATION),
        ("hoodie.merge.data.validation.enabled", ("false",), "the rows of a merge are counted as they are written"),
        ("hoodie.copyonwrite.insert.auto.split", ("true",), "hoodie.parquet.max.file.size says how large files get"),
        ("hoodie.payload.update.on.same.ordering.field", ("false",), "of equal ordering values the later wins"),
        ("hoodie.datasource.write.secondarykey.column", (), "HudiTable.build_index('secondary_index', columns=…) makes "
         "a secondary index"),
        ("hoodie.prewrite.cleaner.policy", ("NONE",), "each write first rolls back what dead writers left; "
         "HudiTable.clean() cleans before a write"),
        ("hoodie.write.rolling.metadata.keys", (), "an entry goes into the commit that is given it: extra_metadata"),
        ("hoodie.base.path", (), "the call's path says where the table lies"),
        # Schemas
        ("hoodie.avro.schema", (), "the schema of a write is that of its rows"),
        ("hoodie.bulkinsert.schema.ddl", (), "the schema of a write is that of its rows"),
        ("hoodie.internal.schema", (), "an input may add columns and widen types, and no more"),
        ("hoodie.assume.date.partitioning", ("false",), "partitions are as the table's properties say"),
        ("hoodie.datasource.partition_extractor_class", (), _JAVA),
        # Files
        ("hoodie.table.log.file.format", ("HOODIE_LOG",), "log files have one format; "
         "hoodie.logfile.data.block.format says what their blocks hold"),
        ("hoodie.hfile.writes.allow.duplicates", ("false",), "an index holds each key once"),
        ("hoodie.parquet.writelegacyformat.enabled", ("false",), "decimals are written as Parquet's newer readers have "
         "them, which Apache Hudi reads"),
        ("hoodie.parquet.write.utc-timezone.enabled", ("true",), "timestamps are stored in UTC"),
        # Classes of Java that would replace a writer's parts
        ("hoodie.avro.write.support.class", ("HoodieAvroWriteSupport",), _JAVA),
        ("hoodie.parquet.spark.row.write.support.class", ("HoodieRowParquetWriteSupport",), _JAVA),
        ("hoodie.parquet.flink.rowdata.write.support.class", ("HoodieRowDataParquetWriteSupport",), _JAVA),
        ("hoodie.io.factory.class", ("HoodieHadoopIOFactory",), _JAVA),
        ("hoodie.storage.class", ("HoodieHadoopStorage",), "storage_options say how the store is reached"),
        ("hoodie.writestatus.class", ("WriteStatus",), _JAVA),
        ("hoodie.record.size.estimator.class", ("AverageRecordSizeEstimator",), _JAVA),
        ("hoodie.compaction.plan.generator", ("HoodieCompactionPlanGenerator",), _JAVA),
        *((name, ("FileGroupReaderBasedMergeHandle", "HoodieWriteMergeHandle", "HoodieMergeHandle",
                  "HoodieConcatHandle", "HoodieMergeHandleWithChangeLog"), _NO_MERGERS)
          for name in ("hoodie.compact.merge.handle.class", "hoodie.write.merge.handle.class",
                       "hoodie.write.concat.handle.class")),
        # Indexes and the metadata table
        ("hoodie.expression.index.function", (), "hoodie.metadata.index.expression.options names it, as expr=…"),
        ("hoodie.metadata.index.drop", (), "HudiTable.drop_index drops an index"),
        ("hoodie.metadata.index.bloom.filter.column.list", (), "Bloom filters are of record keys; "
         "HudiTable.build_index makes one of another column"),
        ("hoodie.metadata.auto.initialize", ("true",), "hoodie.metadata.enable=false goes without one"),
        ("hoodie.metadata.auto.delete.partitions", ("true",), "an index whose option is false is dropped; leave its "
         "option out to keep it"),
        ("hoodie.metadata.record.index.enable.validation.on.initialization", ("false",),
         "HudiTable.metadata.validate() compares an index with the data"),
        ("hoodie.metadata.record.level.index.defer.init", ("false",), "an index is built when it is asked for"),
        ("hoodie.metadata.compact.trigger.strategy", ("NUM_COMMITS",), "commits are what triggers a compaction of the "
         "metadata table"),
        ("hoodie.metadata.derive.from.datatable.clean.policy", ("true",), "the metadata table is cleaned as its table"),
        ("hoodie.metadata.dir.filter.regex", (), "every partition of the table is in its metadata table"),
        ("hoodie.metadata.write.concurrency.mode", ("SINGLE_WRITER",), "the metadata table has the table's writer"),
        ("hoodie.metadata.write.fail.on.table.service.failures", ("true",), "a failure that would leave the metadata "
         "table wrong fails the write"),
        ("hoodie.metadata.fallback.enable", ("false",), "a damaged metadata table is an error; "
         "HudiTable.metadata.delete() and create() make it anew"),
        # Services
        ("hoodie.clustering.enable.expirations", ("false",), "HudiTable.rollback takes a pending clustering back"),
        ("hoodie.rollback.instant.backup.enabled", ("false",), "what a rollback takes back is gone; the timeline keeps "
         "the rollback itself"),
        # What is told to others
        ("hoodie.metadata.metrics.enable", ("false",), "no metrics of the metadata table are reported apart"),
        ("hoodie.metricscompaction.log.blocks.on", ("false",), "no metrics of log blocks are reported"),
    )
}  # fmt: skip

REFUSED_READS: dict[str, Entry] = {
    name: Entry(Kind.READ_PROMISE, accepts=("", *accepts), note=note)
    for name, accepts, note in (
        ("hoodie.realtime.merge.skip", ("false",), _READ_WHOLE),
        ("hoodie.query.as.ro.table", ("false",), "hoodie.datasource.query.type=read_optimized reads base files alone"),
        ("hoodie.read.blob.inline.mode", ("DESCRIPTOR",), "there are no Lance files"),
        ("hoodie.datasource.read.partition.value.extractor.enabled", ("false",), _JAVA),
    )
}
