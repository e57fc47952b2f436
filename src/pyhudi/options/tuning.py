"""Options that tune parts of Apache Hudi that are built in another way here: heaps, tasks, caches, estimates of sizes.

Whatever these options say, rows and promises are the same.
"""

from pyhudi.options.entries import Entry, harmless

_TASKS = "tasks are as many as the rows and files ask for; no stage has this number"
_MEMORY = "memory is bounded by batches, not by fractions of a heap or by buffers of this kind"
_CACHE = "the input is evaluated once and kept where that pays; there is no such cache"
_ESTIMATE = "it only guesses the size of new files before they are written; files are sized by the rows that come"

_RUNS: dict[str, Entry] = {
    **harmless(
        _TASKS, "hoodie.archive.delete.parallelism", "hoodie.bloom.index.parallelism",
        "hoodie.bulkinsert.shuffle.parallelism", "hoodie.delete.shuffle.parallelism", "hoodie.file.listing.parallelism",
        "hoodie.finalize.write.parallelism", "hoodie.global.index.reconcile.parallelism",
        "hoodie.global.simple.index.parallelism", "hoodie.insert.shuffle.parallelism",
        "hoodie.markers.delete.parallelism", "hoodie.metadata.index.bloom.filter.parallelism",
        "hoodie.metadata.index.column.stats.parallelism", "hoodie.metadata.index.expression.parallelism",
        "hoodie.metadata.index.partition.stats.parallelism", "hoodie.metadata.index.secondary.parallelism",
        "hoodie.metadata.max.init.parallelism", "hoodie.metadata.range.repartition.random.seed",
        "hoodie.metadata.range.repartition.sampling.fraction",
        "hoodie.metadata.range.repartition.target.records.per.partition",
        "hoodie.metadata.record.preparation.parallelism", "hoodie.metadata.repartition.default.partitions",
        "hoodie.metadata.repartition.min.partitions.threshold",
        "hoodie.metadata.streaming.write.datatable.write.statuses.coalesce.divisor", "hoodie.rollback.parallelism",
        "hoodie.simple.index.parallelism", "hoodie.upsert.shuffle.parallelism",
    ),
    **harmless("a clean runs in the process of its writer", "hoodie.clean.parallelism",
               "hoodie.clean.optimize.using.local.engine.context"),
    **harmless(
        _MEMORY, "hoodie.cdc.file.group.iterator.memory.spill.bytes", "hoodie.common.diskmap.compression.enabled",
        "hoodie.common.spillable.diskmap.type", "hoodie.compaction.lazy.block.read",
        "hoodie.compaction.reverse.log.read", "hoodie.file.index.cache.spillable.mem",
        "hoodie.file.index.cache.use.spillable.map", "hoodie.memory.compaction.fraction",
        "hoodie.memory.compaction.max.size", "hoodie.memory.dfs.buffer.max.size", "hoodie.memory.merge.fraction",
        "hoodie.memory.merge.max.size", "hoodie.memory.spillable.map.path",
        "hoodie.memory.writestatus.failure.fraction",
        "hoodie.metadata.index.column.stats.inMemory.projection.threshold",
        "hoodie.metadata.index.column.stats.processing.mode.override", "hoodie.metadata.max.reader.buffer.size",
        "hoodie.metadata.max.reader.memory", "hoodie.metadata.spillable.map.path", "hoodie.write.buffer.limit.bytes",
        "hoodie.write.buffer.record.cache.limit", "hoodie.write.buffer.record.sampling.rate",
        "hoodie.write.executor.disruptor.buffer.limit.bytes", "hoodie.write.executor.disruptor.wait.strategy",
        "hoodie.write.executor.type",
    ),
    **harmless(
        _CACHE, "hoodie.bloom.index.input.storage.level", "hoodie.bloom.index.use.caching",
        "hoodie.expression.index.range.metadata.storage.level", "hoodie.hfile.block.cache.enabled",
        "hoodie.hfile.block.cache.size", "hoodie.hfile.block.cache.ttl.minutes",
        "hoodie.metadata.file.cache.max.size.mb", "hoodie.record.index.input.storage.level",
        "hoodie.record.index.use.caching", "hoodie.release.resource.on.completion.enable", "hoodie.schema.cache.enable",
        "hoodie.simple.index.input.storage.level", "hoodie.simple.index.use.caching",
        "hoodie.write.status.storage.level", "hoodie.write.tagged.record.storage.level",
    ),
    **harmless(
        _ESTIMATE, "_hoodie.record.size.estimator.max.commits", "hoodie.logfile.to.parquet.compression.ratio",
        "hoodie.parquet.compression.ratio", "hoodie.record.size.estimation.threshold",
        "hoodie.record.size.estimator.average.metadata.size",
    ),
    **harmless("it counts with a hoodie.write.merge.handle.class of your own only, which is refused",
               "hoodie.write.merge.handle.fallback"),
    **harmless("it counts with hoodie.copyonwrite.insert.auto.split=false only, which is refused",
               "hoodie.copyonwrite.insert.split.size"),
    **harmless("rows stay columns until they are written; there are no other row writers",
               "hoodie.datasource.write.row.writer.enable"),
    **harmless("only files that finished tasks name are committed, so a second copy of a task does no harm",
               "hoodie.block.writes.on.speculative.execution", "hoodie.fail.job.on.duplicate.data.file.detection"),
    **harmless("it counts with hoodie.bulkinsert.user.defined.partitioner options only, which are refused",
               "hoodie.bulkinsert.are.partitioner.records.sorted", "hoodie.bulkinsert.sort.suffix.record_key"),
}  # fmt: skip

_FILES: dict[str, Entry] = {
    **harmless("base files of this format are not written", "hoodie.lance.max.file.size",
               "hoodie.lance.read.allocator.size.bytes", "hoodie.lance.read.metadata.allocator.size.bytes",
               "hoodie.lance.write.allocator.size.bytes", "hoodie.lance.write.flush.byte.watermark"),
    **harmless("hoodie.parquet.max.file.size says how large files of any format get", "hoodie.orc.max.file.size"),
    **harmless("stripes end where they end", "hoodie.orc.block.size"),
    **harmless("HFiles are those of the metadata table, with a block size and codec that every release reads",
               "hoodie.hfile.block.size", "hoodie.hfile.compression.algorithm", "hoodie.hfile.max.file.size"),
    **harmless("whether a column gets a dictionary is decided by its values", "hoodie.parquet.dictionary.enabled"),
    **harmless("columns are found by their names, and carry no numbers", "hoodie.parquet.field_id.write.enabled"),
    **harmless("there is one reader of file groups, whose rows are the same", "hoodie.file.group.reader.enabled",
               "hoodie.datasource.read.use.new.parquet.file.format", "hoodie.merge.use.record.positions",
               "hoodie.metadata.optimized.log.blocks.scan.enable", "hoodie.optimized.log.blocks.scan.enable"),
    **harmless("a filter of the metadata table is the one in its base file, sized by hoodie.index.bloom options",
               *(f"hoodie.metadata.bloom.filter.{name}" for name in (
                   "dynamic.max.entries", "fpp", "num.entries", "type",
               ))),
    **harmless("it counts with hoodie.metadata.compact.trigger.strategy only, which stays NUM_COMMITS",
               "hoodie.metadata.compact.max.delta.seconds"),
    **harmless("it only cuts log files of the metadata table; each length reads alike",
               "hoodie.metadata.max.logfile.size"),
    **harmless("a write does not fail because the metadata table waits for its compaction",
               "hoodie.metadata.max.deltacommits.when_pending"),
}  # fmt: skip

_TIMELINE: dict[str, Entry] = {
    **harmless("an archival runs in its writer's process, reads instant by instant and writes one file",
               "hoodie.commits.archival.batch", "hoodie.archive.limit.instants", "hoodie.archive.merge.enable",
               "hoodie.archive.merge.files.batch.size", "hoodie.archive.merge.small.file.limit.bytes"),
    **harmless("an archival runs after its commit, before the write returns", "hoodie.archive.async"),
    **harmless("a failed archival is logged and tried again; it moves nothing that it could not read",
               "hoodie.fail.on.timeline.archiving"),
    **harmless("a commit that landed stands; a service that fails after it is logged and tried again after the next",
               "hoodie.fail.writes.on.inline.table.service.exception",
               "hoodie.write.can.ignore.post.commit.failures"),
    **harmless("a row that cannot be written fails its write, before the commit", "hoodie.write.ignore.failed"),
    **harmless("a clean runs after its commit, before the write returns", "hoodie.clean.async.enabled"),
    **harmless("a pending clean is always finished before a new one", "hoodie.clean.multiple.enabled"),
    **harmless("a clean is written when it deletes files", "hoodie.write.empty.clean.interval.hours"),
    **harmless("a rollback chooses its files by what is there", "hoodie.rollback.using.markers"),
    **harmless("a rollback holds the table, so no other plans the same", "hoodie.rollback.avoid.duplicate.plan"),
    **harmless("it counts with hoodie.rollback.instant.backup.enabled only, which is refused",
               "hoodie.rollback.instant.backup.dir"),
    **harmless("each service looks at the whole table, which finds what an incremental look finds",
               "hoodie.table.services.incremental.enabled"),
    **harmless("a write's instant is later than every other; a clock that stands before the newest waits",
               "hoodie.time.generator.max_expected_clock_skew_ms", "hoodie.time.generator.type"),
    **harmless("tables of version 4, which it is about, are read only", "hoodie.skip.default.partition.validation"),
    **harmless("the key encoding is that of the table's properties and version",
               "hoodie.write.complex.keygen.validation.enable"),
    **harmless("the input's schema is always checked", "hoodie.avro.schema.validate"),
    **harmless("it only tells how fresh rows are, and hoodie.write.track.event.time.watermark is refused; the ordering "
               "columns say which row wins", "hoodie.payload.event.time.field"),
    **harmless("it counts with hoodie.write.rolling.metadata.keys only, which is refused",
               "hoodie.write.rolling.metadata.timeline.lookback.commits"),
}  # fmt: skip

_READS: dict[str, Entry] = harmless(
    "files are listed and pruned in one way, with the same rows", "hoodie.file.index.enable",
    "hoodie.datasource.read.file.index.list.partitions.from.catalog",
    "hoodie.datasource.read.file.index.listing.mode",
    "hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled",
    "hoodie.datasource.read.file.index.optimize.listing.using.path.filter",
) | harmless(
    "rows that a compaction or a clustering writes anew never count as changes",
    "hoodie.datasource.read.incr.skip_cluster", "hoodie.datasource.read.incr.skip_compact",
)  # fmt: skip

TUNING: dict[str, Entry] = {**_RUNS, **_FILES, **_TIMELINE, **_READS}
