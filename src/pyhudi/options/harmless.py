"""Options that have no effect here: they change no row, no file that matters and no promise. Each group says why.

Every option is listed by its full name. None is covered because its name begins like another one.
"""

from pyhudi.options.entries import Entry, harmless

_NO_SERVER = "there is no timeline server; whoever needs the timeline reads it from the store"
_ONE_HBASE = "it only says how the index HBASE works, and hoodie.index.type=HBASE is refused"
_ONE_SYNC = "it only says how another catalog than the session's Hive metastore is told of commits"
_ONE_MANAGER = "it only says how the table service manager is reached, and the options that ask for it are refused"
_ONE_ERRORS = "it only says how the error table is written, and hoodie.errortable.enable is refused"
_ONE_SQL = "an inner switch of Apache Hudi's SQL; UPDATE and MERGE INTO write whole rows in one commit by themselves"
_ONE_METRIC = "it is for another reporter than PROMETHEUS and INMEMORY, or switches metrics that are always there"
_STRONG = "stores answer with what was written last, so nothing is to be waited for"
_INNER = "an inner switch of Apache Hudi's own code, of which nothing runs here"

_CLUSTERING = {
    **harmless(
        "groups are read and written by as many tasks as the executor runs at a time",
        "hoodie.clustering.max.parallelism", "hoodie.clustering.group.read.parallelism",
        "hoodie.clustering.plan.generation.use.local.engine.context",
    ),
    **harmless(
        "it only says when a clustering follows writes by itself, and hoodie.clustering.async.enabled is refused",
        "hoodie.clustering.async.max.commits",
    ),
    **harmless(
        "it only says how old a pending clustering gets, and hoodie.clustering.enable.expirations is refused",
        "hoodie.clustering.expiration.threshold.mins",
    ),
    **harmless(
        "a write that changes a file group of a clustering is in its way at any time; the clustering then gives way",
        "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
    ),
    **harmless(
        "it belongs to a strategy that hoodie.clustering.plan.strategy.class does not accept",
        "hoodie.clustering.plan.strategy.earliest.commit.to.cluster",
    ),
    **harmless(
        "row groups are copied where a file's columns are those of the table, and decoded where they are not",
        "hoodie.clustering.plan.strategy.binary.copy.schema.evolution.enable",
    ),
    **harmless(
        "columns are matched by their numbers wherever a table has a history of them",
        "hoodie.schema.on.read.enable",
    ),
    **harmless(
        "places on a curve are shares of the rows, which all of a group's rows say; nothing is sampled",
        "hoodie.layout.optimize.build.curve.sample.size", "hoodie.layout.optimize.curve.build.method",
    ),
    **harmless(
        "a clustering that has columns to sort by sorts by them; queries skip by the indexes that a table has",
        "hoodie.layout.optimize.data.skipping.enable", "hoodie.layout.optimize.enable",
    ),
}  # fmt: skip

_BUCKETS = {
    **harmless("rows are the same; queries by key always prune by bucket", "hoodie.bucket.index.query.pruning"),
    **harmless("each bucket's rows go to one task by themselves", "hoodie.bucket.index.remote.partitioner.enable"),
    **harmless("rows go where the index says", "hoodie.storage.layout.type"),
}  # fmt: skip

_INDEXES = {
    **harmless(
        "files are chosen by key ranges and Bloom filters in one pass; the rows found are the same",
        "hoodie.bloom.index.bucketized.checking", "hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism",
        "hoodie.bloom.index.fileid.key.sorting.enable", "hoodie.bloom.index.keys.per.bucket",
        "hoodie.bloom.index.use.treebased.filter",
    ),
    **harmless(
        _ONE_HBASE, "hoodie.hbase.index.update.partition.path",
        *(f"hoodie.index.hbase.{name}" for name in (
            "bucket.number", "desired_puts_time_in_secs", "dynamic_qps", "get.batch.size", "kerberos.user.keytab",
            "kerberos.user.principal", "master.kerberos.principal", "max.qps.fraction", "max.qps.per.region.server",
            "min.qps.fraction", "put.batch.size", "put.batch.size.autocompute", "qps.allocator.class", "qps.fraction",
            "regionserver.kerberos.principal", "rollback.sync", "security.authentication", "sleep.ms.for.get.batch",
            "sleep.ms.for.put.batch", "table", "zk.connection_timeout_ms", "zk.session_timeout_ms", "zknode.path",
            "zkpath.qps_root", "zkport", "zkquorum",
        )),
    ),
}  # fmt: skip

_SYNC = harmless(
    _ONE_SYNC,
    *(f"hoodie.datasource.hive_sync.{name}" for name in (
        "assume_date_partitioning", "base_file_format", "batch_num", "bucket_sync",
        "bucket_sync_spec", "create_managed_table", "filter_pushdown_enabled", "filter_pushdown_max_size",
        "ignore_exceptions", "jdbcurl", "mode", "omit_metadata_fields", "partition_extractor_class",
        "partition_fields", "password", "recreate_table_on_error", "schema_string_length_thresh", "serde_properties",
        "support_timestamp", "sync_as_datasource", "sync_comment", "table_properties", "use_jdbc",
        "use_pre_apache_input_format", "use_spark_catalog", "username",
    )),
    *(f"hoodie.datasource.meta.sync.{name}" for name in (
        "base.path", "glue.all_partitions_read_parallelism", "glue.changed_partitions_read_parallelism",
        "glue.metadata_file_listing", "glue.partition_change_parallelism", "glue.partition_index_fields",
        "glue.partition_index_fields.enable", "glue.skip_table_archive",
    )),
    "hoodie.datasource.meta_sync.condition.sync",
    *(f"hoodie.meta.sync.{name}" for name in (
        "decode_partition", "incremental", "metadata_file_listing", "no_partition_metadata",
        "touch.partitions.enabled",
    )),
    "hoodie.meta_sync.global.replicate.timestamp", "hoodie.meta_sync.spark.version", "hoodie.incremental.use.database",
    "hoodie.spark.polaris.catalog.class",
)  # fmt: skip

_LOCKS = harmless(
    "names of applications stand in Apache Hudi's own logs only", "hoodie.write.lock.app_id",
    "hoodie.write.application.id",
) | harmless(
    "hoodie.write.lock.zookeeper.url has the ports, as for Apache Hudi's own lock", "hoodie.write.lock.zookeeper.port"
) | harmless(
    "the lock's file is local, where files are created atomically", "hoodie.fs.atomic_creation.support"
) | harmless(
    "the table's guard is held in every mode, with no setting", "hoodie.auto.adjust.lock.configs"
) | harmless(
    "it only says how conflicts are looked for; this release finds them all when a write completes",
    *(f"hoodie.write.concurrency.{name}" for name in (
        "async.conflict.detector.initial_delay_ms", "async.conflict.detector.period_ms",
        "early.conflict.check.commit.conflict", "early.conflict.detection.strategy",
    )),
) | harmless(
    "writes that change the schema at once are always checked: the later one is planned anew, or ends in Conflict",
    "hoodie.write.concurrency.schema.conflict.resolution.enable",
)  # fmt: skip

_METRICS = harmless(
    _ONE_METRIC,
    *(f"hoodie.metrics.{name}" for name in (
        "cloudwatch.maxDatumsPerRequest", "cloudwatch.metric.prefix", "cloudwatch.namespace",
        "cloudwatch.report.period.seconds", "configs.properties", "datadog.api.key", "datadog.api.key.skip.validation",
        "datadog.api.key.supplier", "datadog.api.site", "datadog.api.timeout.seconds", "datadog.metric.host",
        "datadog.metric.prefix", "datadog.metric.tags", "datadog.report.period.seconds", "executor.enable",
        "graphite.host", "graphite.metric.prefix", "graphite.port", "graphite.report.period.seconds", "jmx.host",
        "jmx.port", "lock.enable", "m3.env", "m3.host", "m3.port", "m3.service", "m3.tags",
        "pushgateway.delete.on.shutdown", "pushgateway.host", "pushgateway.job.name", "pushgateway.port",
        "pushgateway.random.job.name.suffix", "pushgateway.report.labels", "pushgateway.report.period.seconds",
        "reporter.class",
    )),
)  # fmt: skip

_OTHER_SYSTEMS = {
    **harmless(
        "it is for Glue, DynamoDB and CloudWatch, which are not called; storage_options reach S3",
        *(f"hoodie.aws.{name}" for name in (
            "access.key", "glue.endpoint", "glue.region", "role.arn", "role.external.id", "role.session.name",
            "secret.key", "session.token",
        )),
    ),
    **harmless(
        _ONE_ERRORS,
        *(f"hoodie.errortable.{name}" for name in (
            "base.path", "insert.shuffle.parallelism", "source.rdd.persist", "target.table.name",
            "upsert.shuffle.parallelism", "validate.recordcreation.enable", "validate.targetschema.enable",
            "write.class", "write.failure.strategy", "write.union.enable",
        )),
    ),
    **harmless(
        _ONE_MANAGER, "hoodie.metadata.table.service.manager.actions",
        *(f"hoodie.table.service.manager.{name}" for name in (
            "actions", "connection.retries", "connection.retry.delay.sec", "connection.timeout.sec",
            "deploy.extra.params", "deploy.parallelism", "deploy.queue", "deploy.resources", "deploy.username",
            "execution.engine", "uris",
        )),
    ),
    **harmless(
        "it only says how the metaserver is reached, and hoodie.metaserver.enabled is refused",
        "hoodie.metaserver.connect.retries", "hoodie.metaserver.connect.retry.delay", "hoodie.metaserver.uris",
    ),
    **harmless(
        "it belongs to the streamer, not to a write", "hoodie.streamer.schemaprovider.class",
        "hoodie.streamer.source.kafka.value.deserializer.class", "hoodie.sensitive.config.keys",
    ),
    **harmless(
        _ONE_SQL, "hoodie.internal.sql.merge.into.writes", "hoodie.spark.sql.merge.into.partial.updates",
        "hoodie.spark.sql.optimized.writes.enable", "hoodie.sql.origin.keygen.class", "hoodie.sql.partition.schema",
    ),
    **harmless(
        "a bootstrap reads its files by one code, and says of them what Apache Hudi does",
        *(f"hoodie.bootstrap.{name}" for name in (
            "data.queries.only", "full.input.provider", "parallelism",
        )),
    ),
    **harmless(
        "it only says how validators work, and hoodie.precommit.validators is refused",
        *(f"hoodie.precommit.validators.{name}" for name in (
            "equality.sql.queries", "failure.policy", "inequality.sql.queries", "single.value.sql.queries",
            "streaming.offset.tolerance.percentage",
        )),
    ),
}  # fmt: skip

_SERVER = harmless(
    _NO_SERVER,
    *("hoodie.embed.timeline.server" + name for name in (
        "", ".async", ".gzip", ".port", ".reuse.enabled", ".threads",
    )),
    "hoodie.filesystem.remote.backup.view.enable",
    *(f"hoodie.filesystem.view.{name}" for name in (
        "incr.timeline.sync.enable", "remote.host", "remote.port", "remote.retry.enable", "remote.retry.exceptions",
        "remote.retry.initial_interval_ms", "remote.retry.max_interval_ms", "remote.retry.max_numbers",
        "remote.timeout.secs", "rocksdb.base.path", "secondary.type", "spillable.bootstrap.base.file.mem.fraction",
        "spillable.clustering.mem.fraction", "spillable.compaction.mem.fraction", "spillable.dir",
        "spillable.log.compaction.mem.fraction", "spillable.mem", "spillable.replaced.mem.fraction", "type",
    )),
    "hoodie.instant_state.timeline_server_based.enabled",
    "hoodie.instant_state.timeline_server_based.force_refresh.request.number",
    "hoodie.markers.timeline_server_based.batch.interval_ms", "hoodie.markers.timeline_server_based.batch.num_threads",
) | harmless("each file has a marker of its own, which every rollback reads", "hoodie.write.markers.type")  # fmt: skip

_STORE = harmless(
    _STRONG, "hoodie.consistency.check.enabled", "hoodie.consistency.check.initial_interval_ms",
    "hoodie.consistency.check.max_checks", "hoodie.consistency.check.max_interval_ms",
    "hoodie.optimistic.consistency.guard.sleep_time_ms", "_hoodie.optimistic.consistency.guard.enable",
) | harmless(
    "the store's own client tries again; storage_options say how often",
    *(f"hoodie.filesystem.operation.retry.{name}" for name in (
        "enable", "exceptions", "initial_interval_ms", "max_interval_ms", "max_numbers",
    )),
)  # fmt: skip

_INTERNALS = harmless(
    _INNER, "_.hoodie.allow.multi.write.on.same.instant", "_hoodie.hfile.use.native.reader",
    "_hoodie.metadata.ignore.spurious.deletes", "_hoodie.spark.sql.merge.into.prepped",
    "_hoodie.spark.sql.writes.prepped", "_hoodie.time.generator.reuse.enable", "_hoodie.writes.fileid.encoding",
    "hoodie.internal.write.schema.canonicalize", "hoodie.is.update.record.for.mor", "hoodie.payload.record.schema",
    "hoodie.payload.combined.schema.validate",
)  # fmt: skip

OF_OTHERS: dict[str, Entry] = {
    **_CLUSTERING, **_BUCKETS, **_INDEXES, **_SYNC, **_LOCKS, **_METRICS, **_OTHER_SYSTEMS, **_SERVER, **_STORE,
    **_INTERNALS,
}  # fmt: skip
