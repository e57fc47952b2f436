"""What each option means to this release: one entry a name, or one for all names that begin alike.

To widen the scope, change an entry: let it accept one more value, or turn it into a SETTING. A known name without
an entry is IGNORED.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pyhudi.model.table_facts import Fact


class Kind(StrEnum):
    """SETTING: a field of a settings class. FACT: must agree with the table. READ: of reads; writes skip it.

    PROMISE: nothing to do, but only some values can be kept. IGNORED: no meaning here.
    """

    SETTING = "SETTING"
    FACT = "FACT"
    READ = "READ"
    PROMISE = "PROMISE"
    IGNORED = "IGNORED"


@dataclass(frozen=True, slots=True)
class Entry:
    """`accepts`: values that this release keeps, in any case of letters; None: all. An empty text always
    passes, as if the option were left out. `knows`: further values of Apache Hudi's; where there are
    any, and for every SETTING, a value in neither list is a mistake. `note`: why it has no effect, or when more comes.
    """

    kind: Kind
    accepts: tuple[str, ...] | None = None
    knows: tuple[str, ...] = ()
    note: str = ""
    fact: Fact | None = None


def find_entry(name: str) -> Entry:
    """The entry of a name: its own, that of its longest beginning, or the one that ignores it."""
    if name in _ENTRIES:
        return _ENTRIES[name]
    prefixes = [prefix for prefix in _PREFIXES if name.startswith(prefix)]
    return _PREFIXES[max(prefixes, key=len)] if prefixes else _NO_ENTRY


def fact_names(fact: Fact) -> tuple[str, ...]:
    """The options that spell a fact of the table."""
    return tuple(name for name, entry in _ENTRIES.items() if entry.fact is fact)


_NO_ENTRY = Entry(Kind.IGNORED, note="nothing in this release depends on it")


def _each(names: Iterable[str], entry: Entry) -> dict[str, Entry]:
    return dict.fromkeys(names, entry)


def _fact(fact: Fact, *names: str, accepts: tuple[str, ...] | None = None, note: str = "") -> dict[str, Entry]:
    return _each(names, Entry(Kind.FACT, accepts, note=note, fact=fact))


def _off(note: str, *names: str) -> dict[str, Entry]:
    return _each(names, Entry(Kind.PROMISE, ("", "false"), note=note))


def _empty(note: str, *names: str) -> dict[str, Entry]:
    return _each(names, Entry(Kind.PROMISE, ("",), note=note))


_COMES_LATER = "more comes with a later release"
_MERGES = ("DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload", "EventTimeAvroPayload")
DELETE_PAYLOAD = "EmptyHoodieRecordPayload"
"""The payload class whose rows are deletes, whatever they hold."""
_MERGERS = (
    "HoodieAvroRecordMerger",
    "HoodieSparkRecordMerger",
    "DefaultSparkRecordMerger",
    "OverwriteWithLatestMerger",
)
_MERGE_STRATEGIES = ("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d")
_KEY_KINDS = tuple(
    f"{kind}{avro}" for kind in ("SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM") for avro in ("", "_AVRO")
)
_KEY_CLASSES = tuple(
    f"{kind}{avro}KeyGenerator"
    for kind in ("Simple", "Complex", "Nonpartitioned", "TimestampBased", "Custom")
    for avro in ("", "Avro")
)

_FACTS: dict[str, Entry] = {
    **_fact(Fact.NAME, "hoodie.table.name", "hoodie.datasource.write.table.name"),
    **_fact(Fact.DATABASE, "hoodie.database.name"),
    **_fact(Fact.TABLE_TYPE, "hoodie.table.type", "hoodie.datasource.write.table.type"),
    **_fact(Fact.VERSION, "hoodie.table.version", "hoodie.write.table.version"),
    **_fact(Fact.LAYOUT, "hoodie.timeline.layout.version"),
    **_fact(Fact.RECORD_KEY, "hoodie.table.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
    **_fact(
        Fact.PARTITION_BY, "hoodie.table.partition.fields", "hoodie.datasource.write.partitionpath.field"
    ),
    **_fact(
        Fact.ORDERING, "hoodie.table.ordering.fields", "hoodie.table.precombine.field",
        "hoodie.datasource.write.precombine.field", "hoodie.payload.ordering.field",
    ),
    **_fact(
        Fact.KEY_GENERATOR, "hoodie.table.keygenerator.type", "hoodie.datasource.write.keygenerator.type",
        accepts=("", *_KEY_KINDS), note="key generators of your own cannot be called",
    ),
    **_fact(
        Fact.KEY_GENERATOR, "hoodie.table.keygenerator.class", "hoodie.datasource.write.keygenerator.class",
        accepts=("", *_KEY_CLASSES), note="key generators of your own cannot be called",
    ),
    **_fact(Fact.IS_HIVE_STYLE, "hoodie.datasource.write.hive_style_partitioning"),
    **_fact(Fact.IS_URL_ENCODED, "hoodie.datasource.write.partitionpath.urlencode"),
    **_fact(
        Fact.DROPS_PARTITION_COLUMNS, "hoodie.datasource.write.drop.partition.columns",
        accepts=("", "false"), note="partition columns stay in the files",
    ),
    **_fact(
        Fact.HAS_META_FIELDS, "hoodie.populate.meta.fields",
        accepts=("", "true"), note="meta fields are always written",
    ),
    **_fact(
        Fact.BASE_FILE_FORMAT, "hoodie.table.base.file.format", "hoodie.base.file.format",
        accepts=("", "parquet"), note="base files are Parquet",
    ),
    **_fact(
        Fact.MERGE_MODE, "hoodie.record.merge.mode", "hoodie.write.record.merge.mode",
        accepts=("", "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"), note=_COMES_LATER,
    ),
    **_fact(
        Fact.MERGE_MODE, "hoodie.compaction.payload.class",
        accepts=("", *_MERGES), note="other payloads come with a later release",
    ),
    **_fact(
        Fact.MERGE_MODE, "hoodie.datasource.write.payload.class",
        accepts=("", *_MERGES, DELETE_PAYLOAD), note="other payloads come with a later release",
    ),
    **_fact(
        Fact.MERGE_MODE, "hoodie.record.merge.strategy.id", "hoodie.write.record.merge.strategy.id",
        accepts=("", *_MERGE_STRATEGIES), note="these are event time and commit time; " + _COMES_LATER,
    ),
    **_fact(Fact.IS_CDC_ENABLED, "hoodie.table.cdc.enabled", accepts=("", "false"), note="it comes later"),
    **_fact(Fact.TIMEZONE, "hoodie.table.timeline.timezone"),
}  # fmt: skip

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

_SETTINGS: dict[str, Entry] = {
    **_each(
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
    **_each(
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
    "hoodie.datasource.write.operation": Entry(Kind.SETTING, _OPERATIONS, _OTHER_OPERATIONS, _COMES_LATER),
}  # fmt: skip

_SYNC = "no catalog is told about commits; " + _COMES_LATER
_SERVICES = "table services do not run within writes yet; " + _COMES_LATER
_INDEX_BUILDS = "the metadata table holds the partition 'files' only; other indexes come with a later release"
_EVOLUTION = "an input may add columns and widen types; to rename or drop them comes with a later release"

_PROMISES: dict[str, Entry] = {
    "hoodie.write.concurrency.mode": Entry(
        Kind.PROMISE, ("SINGLE_WRITER",), ("OPTIMISTIC_CONCURRENCY_CONTROL",
        "NON_BLOCKING_CONCURRENCY_CONTROL"),
        "a write holds the table alone; more writers at a time come with a later release",
    ),
    **_empty(
        "a write holds the table by its own guard; lock providers come with a later release",
        "hoodie.write.lock.provider"
    ),
    **_off(
        _SERVICES, "hoodie.compact.inline", "hoodie.compact.schedule.inline", "hoodie.log.compaction.inline",
        "hoodie.log.compaction.enable", "hoodie.clustering.inline", "hoodie.clustering.schedule.inline",
        "hoodie.clustering.async.enabled", "hoodie.datasource.compaction.async.enable",
        "hoodie.table.service.manager.enabled", "hoodie.metadata.table.service.manager.enabled",
        "hoodie.partition.ttl.inline", "hoodie.metadata.index.async",
    ),
    **_off(
        _INDEX_BUILDS, "hoodie.metadata.index.column.stats.enable",
        "hoodie.metadata.index.partition.stats.enable",
        "hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.bloom.filter.enable",
        "hoodie.metadata.global.record.level.index.enable", "hoodie.metadata.record.level.index.enable",
        "hoodie.metadata.index.expression.enable", "hoodie.metadata.index.secondary.enable",
    ),
    **_off(_SYNC, "hoodie.datasource.hive_sync.enable", "hoodie.datasource.meta.sync.enable"),
    **_off(
        _EVOLUTION, "hoodie.schema.on.read.enable",
        "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
    ),
    **_empty(
        _EVOLUTION, "hoodie.write.schema", "hoodie.write.partial.update.schema",
        "hoodie.table.partial.update.mode",
        "hoodie.write.partial.update.unavailable.value", "hoodie.avro.schema.external.transformation",
    ),
    **_empty(
        "deletes are a call of their own; other marks of a delete come with a later release",
        "hoodie.payload.delete.field", "hoodie.payload.delete.marker",
    ),
    # Before version 8 the id says nothing of the mode: Apache Hudi 0.15 stores one for every payload.
    **_each(
        ("hoodie.compaction.record.merger.strategy", "hoodie.datasource.write.record.merger.strategy"),
        Entry(Kind.PROMISE, _MERGE_STRATEGIES, note=_COMES_LATER),
    ),
    "hoodie.write.record.merge.custom.implementation.classes": Entry(
        Kind.PROMISE, ("", *_MERGERS), note="mergers of your own come with a later release"
    ),
    **_empty(
        "classes of Java cannot be called", "hoodie.bulkinsert.user.defined.partitioner.class",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns", "hoodie.index.class",
        "hoodie.storage.layout.partitioner.class", "hoodie.precommit.validators",
        "hoodie.prewrite.validators",
        "hoodie.client.init.callback.classes", "hoodie.fileid.prefix.provider.class",
        "hoodie.parquet.write.config.injector.class",
    ),
    **_empty("files are not encrypted; " + _COMES_LATER, "parquet.crypto.factory.class"),
    **_empty("bootstrapped tables come with a later release", "hoodie.bootstrap.base.path"),
    **_off("bootstrapped tables come with a later release", "hoodie.clean.delete.bootstrap.base.file"),
    "hoodie.clean.trigger.strategy": Entry(Kind.PROMISE, ("NUM_COMMITS",), note="commits are what triggers a clean"),
    "hoodie.clean.failed.writes.policy": Entry(
        Kind.PROMISE, ("EAGER", "LAZY"), ("NEVER",),
        "each write first rolls back what dead writers left; those with a living heartbeat stay",
    ),
    **_empty(
        "every partition is cleaned", "hoodie.clean.partition.filter.regex", "hoodie.clean.partition.filter.selected"
    ),
    "hoodie.storage.layout.type": Entry(Kind.PROMISE, ("DEFAULT",), ("BUCKET",),
    "buckets come later"),
    "hoodie.parquet.outputtimestamptype": Entry(
        Kind.PROMISE, ("TIMESTAMP_MICROS",), ("TIMESTAMP_MILLIS", "INT96"),
        "timestamps are stored in microseconds"
    ),
    "hoodie.table.format": Entry(Kind.PROMISE, ("", "native"), note="no other table format is written"),
    "hoodie.write.commit.callback.class": Entry(
        Kind.PROMISE, ("", "HoodieWriteCommitHttpCallback"),
        note="a callback goes by HTTP, or is the call's on_commit",
    ),
    **_empty(
        "insert_overwrite replaces the partitions of its rows; delete_partition empties others",
        "hoodie.static.overwrite.partition.paths",
    ),
    "hoodie.auto.commit": Entry(Kind.PROMISE, ("true",), ("false",), "a write always commits"),
    **_off(
        _COMES_LATER, "hoodie.errortable.enable",
        "hoodie.allow.operation.metadata.field", "hoodie.table.multiple.base.file.formats.enable",
        "hoodie.partition.metafile.use.base.format",
        "hoodie.datasource.write.slash.separated.date.partitioning",
        "hoodie.write.complex.keygen.new.encoding", "hoodie.metaserver.enabled",
        "hoodie.write.track.event.time.watermark", "hoodie.metadata.streaming.write.enabled",
    ),
}  # fmt: skip

_UNUSED: dict[str, Entry] = {
    "path": Entry(Kind.READ),
    "hoodie.write.auto.upgrade": Entry(Kind.IGNORED, note="a write never changes the table's version"),
    "hoodie.commits.archival.batch": Entry(Kind.IGNORED, note="one archival writes one file, read instant by instant"),
    "hoodie.archive.async": Entry(Kind.IGNORED, note="an archival runs after its commit, before the write returns"),
    "hoodie.fail.on.timeline.archiving": Entry(
        Kind.IGNORED, note="a failed archival is logged and tried again; it moves nothing that it could not read"
    ),
    "hoodie.avro.schema.validate": Entry(Kind.IGNORED, note="the input's schema is always checked"),
    "hoodie.clean.async.enabled": Entry(Kind.IGNORED, note="a clean runs after its commit, before the write returns"),
    "hoodie.clean.multiple.enabled": Entry(Kind.IGNORED, note="a pending clean is always finished before a new one"),
    "hoodie.clean.parallelism": Entry(Kind.IGNORED, note="a clean runs in the process of its writer"),
    "hoodie.clean.optimize.using.local.engine.context": Entry(
        Kind.IGNORED, note="a clean runs in the process of its writer"
    ),
    "hoodie.write.empty.clean.interval.hours": Entry(Kind.IGNORED, note="a clean is written when it deletes files"),
    "hoodie.rollback.using.markers": Entry(Kind.IGNORED, note="a rollback chooses its files by what is there"),
    "hoodie.write.record.positions": Entry(Kind.IGNORED, note="copy-on-write tables have no logs"),
}

_READS: dict[str, Entry] = {
    **_each(
        (
            "hoodie.datasource.query.type", "as.of.instant", "hoodie.datasource.read.begin.instanttime",
            "hoodie.datasource.read.end.instanttime", "hoodie.enable.data.skipping",
        ),
        Entry(Kind.READ),
    ),
    "hoodie.datasource.query.incremental.format": Entry(
        Kind.READ, ("latest_state",), ("cdc",), "change data come with a later release"
    ),
    "hoodie.datasource.merge.type": Entry(Kind.READ, ("payload_combine", "skip_merge")),
    "hoodie.read.timeline.holes.resolution.policy": Entry(
        Kind.READ, ("FAIL",), ("BLOCK", "USE_TRANSITION_TIME"), _COMES_LATER
    ),
    **_each(
        (
            "hoodie.datasource.read.incr.path.glob", "hoodie.datasource.read.incr.filters",
            "hoodie.datasource.read.incr.table.version", "hoodie.datasource.read.streaming.table.version",
            "hoodie.datasource.read.paths",
            "hoodie.datasource.read.table.valued.function.filesystem.relation.subpath",
        ),
        Entry(Kind.READ, ("",), note="filter the DataFrame instead; " + _COMES_LATER),
    ),
    **_each(
        (
            "hoodie.datasource.read.schema.use.end.instanttime",
            "hoodie.datasource.read.create.filesystem.relation",
            "hoodie.datasource.read.extract.partition.values.from.path",
            "hoodie.datasource.read.table.valued.function.timeline.relation",
            "hoodie.datasource.read.table.valued.function.timeline.relation.archived",
        ),
        Entry(Kind.READ, ("", "false"), note=_COMES_LATER),
    ),
}  # fmt: skip

_ENTRIES: dict[str, Entry] = {**_FACTS, **_SETTINGS, **_PROMISES, **_UNUSED, **_READS}

_PREFIXES: dict[str, Entry] = {
    "hoodie.datasource.read.": Entry(Kind.READ),
    "hoodie.file.index.": Entry(Kind.READ),
    "hoodie.archive.": Entry(Kind.IGNORED, note="it tunes jobs and small files that archiving does not have here"),
    "hoodie.record.merge.property.": Entry(Kind.PROMISE, ("",), note=_COMES_LATER),
    "parquet.encryption.": Entry(Kind.PROMISE, ("",), note="files are not encrypted; " + _COMES_LATER),
    "hoodie.metrics.": Entry(Kind.IGNORED, note="no metrics are reported"),
    "hoodie.write.lock.": Entry(Kind.IGNORED, note="a write holds the table by its own guard, without a lock provider"),
    "hoodie.datasource.hive_sync.": Entry(Kind.IGNORED, note="no catalog is told about commits"),
    "hoodie.meta.sync.": Entry(Kind.IGNORED, note="no catalog is told about commits"),
    "hoodie.embed.timeline.server": Entry(Kind.IGNORED, note="there is no timeline server"),
    "hoodie.filesystem.": Entry(Kind.IGNORED, note="there is no file-system view server"),
    "hoodie.memory.": Entry(Kind.IGNORED, note="memory is bounded by batches, not by fractions of a heap"),
    "hoodie.streamer.": Entry(Kind.IGNORED, note="it belongs to the streamer, not to a write"),
    "hoodie.deltastreamer.": Entry(Kind.IGNORED, note="it belongs to the streamer, not to a write"),
}
