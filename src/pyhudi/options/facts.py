"""Options that state a fact of the table. They must agree with the table."""

from pyhudi.options.entries import COMES_LATER, DELETE_PAYLOAD, Entry, Kind, each, fact
from pyhudi.options.registered import KEY_GENERATOR_CLASSES, PAYLOAD_CLASSES, OwnKind
from pyhudi.options.table_facts import Fact

_NO_JAVA = "other payloads are Java code, which cannot be run; register a merger for it: register_payload_class"
_NO_GENERATOR = (
    "other key generators are Java code, which cannot be run; register one of that name: register_key_generator"
)
_PROPERTY = "hoodie.record.merge.property."
_KEY_KINDS = tuple(
    f"{kind}{avro}" for kind in ("SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM") for avro in ("", "_AVRO")
)

FACTS: dict[str, Entry] = {
    **fact(Fact.NAME, "hoodie.table.name", "hoodie.datasource.write.table.name"),
    **fact(Fact.DATABASE, "hoodie.database.name"),
    **fact(Fact.TABLE_TYPE, "hoodie.table.type", "hoodie.datasource.write.table.type"),
    **fact(Fact.VERSION, "hoodie.table.version", "hoodie.write.table.version"),
    **fact(Fact.LAYOUT, "hoodie.timeline.layout.version"),
    **fact(Fact.RECORD_KEY, "hoodie.table.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
    **fact(
        Fact.PARTITION_BY, "hoodie.table.partition.fields", "hoodie.datasource.write.partitionpath.field"
    ),
    **fact(
        Fact.ORDERING, "hoodie.table.ordering.fields", "hoodie.table.precombine.field",
        "hoodie.datasource.write.precombine.field", "hoodie.payload.ordering.field",
    ),
    **fact(
        Fact.KEY_GENERATOR, "hoodie.table.keygenerator.type", "hoodie.datasource.write.keygenerator.type",
        accepts=("", *_KEY_KINDS, "USER_PROVIDED"), note=_NO_GENERATOR,
    ),
    **fact(
        Fact.KEY_GENERATOR, "hoodie.table.keygenerator.class", "hoodie.datasource.write.keygenerator.class",
        accepts=("", *KEY_GENERATOR_CLASSES), note=_NO_GENERATOR, own=OwnKind.KEY_GENERATOR,
    ),
    **fact(Fact.IS_HIVE_STYLE, "hoodie.datasource.write.hive_style_partitioning"),
    **fact(Fact.IS_URL_ENCODED, "hoodie.datasource.write.partitionpath.urlencode"),
    **fact(Fact.HAS_SLASHED_DATES, "hoodie.datasource.write.slash.separated.date.partitioning"),
    **fact(Fact.DROPS_PARTITION_COLUMNS, "hoodie.datasource.write.drop.partition.columns"),
    **fact(
        Fact.HAS_META_FIELDS, "hoodie.populate.meta.fields",
    ),
    **fact(
        Fact.BASE_FILE_FORMAT, "hoodie.table.base.file.format", "hoodie.base.file.format",
        accepts=("", "parquet", "orc", "hfile", "lance"), note="base files of other formats are not written",
    ),
    **fact(
        Fact.MERGE_MODE, "hoodie.record.merge.mode", "hoodie.write.record.merge.mode",
        accepts=("", "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"),
    ),
    **fact(
        Fact.MERGE_MODE, "hoodie.compaction.payload.class",
        accepts=("", *PAYLOAD_CLASSES), note=_NO_JAVA, own=OwnKind.PAYLOAD_CLASS,
    ),
    **fact(
        Fact.MERGE_MODE, "hoodie.datasource.write.payload.class",
        accepts=("", *PAYLOAD_CLASSES, DELETE_PAYLOAD), note=_NO_JAVA, own=OwnKind.PAYLOAD_CLASS,
    ),
    **fact(
        Fact.MERGE_MODE, "hoodie.record.merge.strategy.id", "hoodie.write.record.merge.strategy.id"
    ),
    **fact(
        Fact.PARTIAL_UPDATE_MODE, "hoodie.table.partial.update.mode",
        accepts=("", "IGNORE_DEFAULTS", "FILL_UNAVAILABLE"), note=COMES_LATER,
    ),
    **fact(
        Fact.UNAVAILABLE_VALUE, _PROPERTY + "hoodie.write.partial.update.unavailable.value",
        "hoodie.write.partial.update.unavailable.value",
    ),
    **fact(Fact.DELETE_FIELD, _PROPERTY + "hoodie.payload.delete.field", "hoodie.payload.delete.field"),
    **fact(Fact.DELETE_MARKER, _PROPERTY + "hoodie.payload.delete.marker", "hoodie.payload.delete.marker"),
    **fact(Fact.IS_CDC_ENABLED, "hoodie.table.cdc.enabled"),
    **fact(Fact.CHANGE_MODE, "hoodie.table.cdc.supplemental.logging.mode"),
    **fact(Fact.TIMEZONE, "hoodie.table.timeline.timezone"),
}  # fmt: skip

PROPERTIES: dict[str, Entry] = {
    # Where files lie: stated when the table is created; every reader follows the table's properties.
    **each(
        (
            "hoodie.timeline.path", "hoodie.timeline.history.path", "hoodie.archivelog.folder",
            "hoodie.table.create.schema", "hoodie.partition.metafile.use.base.format",
            "hoodie.bootstrap.index.enable", "hoodie.bootstrap.index.type", "hoodie.bootstrap.index.class",
        ),
        Entry(Kind.PROPERTY, note="a new table is told once; later the table says"),
    ),
    **each(
        (
            "hoodie.table.checksum", "hoodie.table.initial.version", "hoodie.table.index.defs.path",
            "hoodie.table.legacy.payload.class", "hoodie.table.metadata.partitions",
            "hoodie.table.metadata.partitions.inflight", "hoodie.table.partition_extractor_class",
            "hoodie.table.secondary.indexes.metadata",
        ),
        Entry(Kind.PROPERTY, accepts=("",), note="the table keeps it for itself"),
    ),
}  # fmt: skip
