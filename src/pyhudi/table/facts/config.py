"""What `hoodie.properties` says about a table, as typed facts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Literal, TypeAlias, get_args

from pyhudi.by_content import ByContent
from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.log.changes import ChangeMode, parse_change_mode
from pyhudi.format.metadata.groups import FILES
from pyhudi.merge.payloads import DELETE_FIELD, DELETE_MARKER, PARTIAL_UPDATE_MODE, UNAVAILABLE, merge_property
from pyhudi.merge.rules import MergeMode
from pyhudi.options.table_facts import TableFacts, short_class_name
from pyhudi.timeline.layout import TimelineLayout, timeline_layout
from pyhudi.versions import LAYOUT_VERSION, WAY_TO_FIVE, TableVersion, table_version

TableType: TypeAlias = Literal["COPY_ON_WRITE", "MERGE_ON_READ"]

BASE_FORMAT = "hoodie.table.base.file.format"
CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_MODE = "hoodie.table.cdc.supplemental.logging.mode"
METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
METADATA_PARTITIONS_LOST = "pyhudi.metadata.partitions.lost"


class KeyKind(StrEnum):
    """How record keys and partition paths are spelled. Spec: format/layout.md section 5."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The facts of a table. `properties` holds the whole file; the other fields are parsed from it.

    `drops_partition_columns`: files may lack the partition columns. `bootstrap_base`: the folder from which the table
    was bootstrapped, as it is stored; None if it was not, or if its index of source files is switched off.
    """

    properties: Mapping[str, str]
    name: str
    table_type: TableType
    version: TableVersion
    layout: TimelineLayout
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]
    key_kind: KeyKind
    merge_mode: MergeMode
    is_hive_style: bool
    is_url_encoded: bool
    has_slashed_dates: bool
    has_meta_fields: bool
    drops_partition_columns: bool
    bootstrap_base: str | None
    is_utc: bool
    metadata_partitions: tuple[str, ...]
    create_schema: str | None

    @property
    def compared_by(self) -> tuple[str, ...]:
        """The ordering columns by which a row wins over that of another commit: none by commit-time ordering."""
        return () if self.merge_mode is MergeMode.COMMIT_TIME else self.ordering

    @property
    def time_based(self) -> tuple[str, ...]:
        """The partition columns whose paths are formatted times, such as 2026/11/24 for a stored number.

        Before version 8 a custom key generator stores no kinds. Then every partition column is listed, for any of
        them may be time-based.
        """
        if self.key_kind is KeyKind.TIMESTAMP:
            return self.partition_by
        if self.key_kind is not KeyKind.CUSTOM:
            return ()
        kinds = {f.partition(":")[0]: f.partition(":")[2].upper() for f in self.partition_fields}
        return tuple(name for name in self.partition_by if kinds[name] != "SIMPLE")

    @property
    def may_nest_partitions(self) -> bool:
        """Whether the folder of a partition may lie within that of another one: where a `/` of a value makes folders,
        and where others than the columns make paths. Example: the texts `a` and `a/b`.
        """
        if not self.partition_by or self.key_kind is KeyKind.NON_PARTITION:
            return False
        if (
            self.key_kind in (KeyKind.OTHER, KeyKind.CUSTOM)
            or self.has_slashed_dates
            or self.bootstrap_base is not None
        ):
            return True
        return not self.is_url_encoded and not self.time_based

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The partition columns as they are stored, with their kinds where a custom key generator stores them."""
        return _fields(self.properties.get("hoodie.table.partition.fields"))

    @property
    def key_generator_class(self) -> str:
        """The key generator as the table names it: by its class, or else by its kind."""
        named = (self.properties.get(f"hoodie.table.keygenerator.{what}", "").strip() for what in ("class", "type"))
        return next(filter(None, named), "")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that are left out of new files: their values are in the partition path."""
        return self.partition_by if self.drops_partition_columns else ()

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == "MERGE_ON_READ"

    @property
    def base_format(self) -> str:
        """The format of new base files, in upper case."""
        return (self.properties.get(BASE_FORMAT) or "PARQUET").strip().upper()

    @property
    def has_known_statistics(self) -> bool:
        """Whether Apache Hudi reads what base files state of their columns. Where it does not, its statistics of a
        partition are those of logs alone, as if the base files had no rows. Seen: 1.2.0, ORC, HFILE and LANCE.
        """
        return self.base_format == "PARQUET"

    @property
    def has_parquet_metafiles(self) -> bool:
        """Whether the files that mark partitions are Parquet files, and not texts. Readers look for texts first."""
        return self.base_format == "PARQUET" and _flag(self.properties, "hoodie.partition.metafile.use.base.format")

    @property
    def has_logical_timestamps(self) -> bool:
        return _flag(self.properties, "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled")

    @property
    def metadata_partitions_inflight(self) -> tuple[str, ...]:
        """Partitions of the metadata table that are being built. Writers keep them up to date, readers ignore them."""
        named = self.properties.get(METADATA_PARTITIONS_INFLIGHT)
        return _fields(named) if self.version.has_known_metadata_table else ()

    @property
    def metadata_partitions_lost(self) -> tuple[str, ...]:
        """Indexes of a metadata table that is gone, which the next writer makes anew: a note of this library's own."""
        named = self.properties.get(METADATA_PARTITIONS_LOST)
        return _fields(named) if self.version.has_known_metadata_table else ()

    @property
    def metadata_partitions_kept(self) -> tuple[str, ...]:
        """Those that are complete, and those that the next writer makes anew."""
        return (*self.metadata_partitions, *self.metadata_partitions_lost)

    @property
    def metadata_partitions_named(self) -> frozenset[str]:
        """Partitions of the metadata table, complete or being built."""
        return frozenset((*self.metadata_partitions, *self.metadata_partitions_inflight))

    @property
    def has_metadata_table(self) -> bool:
        return FILES in self.metadata_partitions

    @property
    def has_ready_indexes(self) -> bool:
        """Whether the metadata table has anything complete beside the listing."""
        return not set(self.metadata_partitions) <= {FILES}

    @property
    def has_indexes(self) -> bool:
        """Whether the metadata table has anything, complete or being built, beside the listing."""
        return not self.metadata_partitions_named <= {FILES}

    @property
    def change_mode(self) -> ChangeMode | None:
        """What the change logs hold that writers keep. None for a table without change data.

        Raises: Invalid for a mode that no release knows.
        """
        if not _flag(self.properties, CDC_ENABLED):
            return None
        return parse_change_mode(self.properties.get(CDC_MODE, ""))

    def zone(self, process_zone: tzinfo) -> tzinfo:
        """The time zone of instants: UTC, or `process_zone` if the table says LOCAL."""
        return UTC if self.is_utc else process_zone

    def facts(self) -> TableFacts:
        """The facts that a write's options must not contradict."""
        return TableFacts(
            name=self.name,
            table_type=self.table_type,
            version=self.version.number,
            record_key=self.record_key,
            partition_by=self.partition_by,
            ordering=self.ordering,
            key_generator=self.key_kind.value,
            key_generator_class=self.key_generator_class,
            merge_mode=self.merge_mode.value,
            is_hive_style=self.is_hive_style,
            is_url_encoded=self.is_url_encoded,
            has_slashed_dates=self.has_slashed_dates,
            timezone="UTC" if self.is_utc else "LOCAL",
            database=self.properties.get("hoodie.database.name", ""),
            has_meta_fields=self.has_meta_fields,
            drops_partition_columns=self.drops_partition_columns,
            base_file_format=self.base_format,
            is_cdc_enabled=_flag(self.properties, CDC_ENABLED),
            change_mode=(self.change_mode or parse_change_mode("")).value,
            payload=short_class_name(
                self.properties.get("hoodie.table.legacy.payload.class")
                or self.properties.get("hoodie.compaction.payload.class", "")
            ),
            legacy_payload=short_class_name(self.properties.get("hoodie.table.legacy.payload.class", "")),
            partial_update_mode=self.properties.get(PARTIAL_UPDATE_MODE, "").strip().upper(),
            unavailable_value=merge_property(self.properties, UNAVAILABLE),
            delete_field=merge_property(self.properties, DELETE_FIELD),
            delete_marker=merge_property(self.properties, DELETE_MARKER),
        )


_known: ByContent[tuple[object, ...], TableConfig] = ByContent(
    2 << 20, lambda _, config: 2 * sum(len(key) + len(value) + 100 for key, value in config.properties.items())
)
"""The facts in properties that were read before."""


def table_config(properties: Mapping[str, str], *, path: str) -> TableConfig:
    """The facts in a data table's properties.

    Raises: Unsupported for a table version, layout or feature that this release cannot read;
    CorruptFile for values that no Hudi release writes.
    """

    def check() -> TableConfig:
        table_version(properties, path=path)
        _refuse_unknown_features(properties, path=path)
        facts = table_facts(properties, path=path)
        _refuse_untold_values(facts, path=path)
        return facts

    return _known.get(("data table", *properties.items()), check)


def table_facts(properties: Mapping[str, str], *, path: str) -> TableConfig:
    """The facts in the properties of any table, be it a data table or a metadata table, with any base file format."""
    return _known.get(tuple(properties.items()), lambda: _table_facts(dict(properties), path))


def _table_facts(properties: Mapping[str, str], path: str) -> TableConfig:
    version = table_version(properties, path=path)
    return TableConfig(
        properties=properties,
        name=properties["hoodie.table.name"],
        table_type=_table_type(properties, path=path),
        version=version,
        layout=_layout(properties, version, path=path),
        record_key=_fields(properties.get("hoodie.table.recordkey.fields")),
        partition_by=tuple(f.partition(":")[0] for f in _fields(properties.get("hoodie.table.partition.fields"))),
        ordering=_fields(
            properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field")
        ),
        key_kind=_key_kind(properties),
        merge_mode=_merge_mode(properties, path=path),
        is_hive_style=_flag(properties, "hoodie.datasource.write.hive_style_partitioning"),
        is_url_encoded=_flag(properties, "hoodie.datasource.write.partitionpath.urlencode"),
        has_slashed_dates=_flag(properties, "hoodie.datasource.write.slash.separated.date.partitioning"),
        has_meta_fields=_flag(properties, "hoodie.populate.meta.fields", default="true"),
        drops_partition_columns=_flag(properties, "hoodie.datasource.write.drop.partition.columns"),
        bootstrap_base=_bootstrap_base(properties),
        is_utc=properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC",
        metadata_partitions=_fields(properties.get(METADATA_PARTITIONS)) if version.has_known_metadata_table else (),
        create_schema=properties.get("hoodie.table.create.schema") or None,
    )


def _layout(properties: Mapping[str, str], version: TableVersion, *, path: str) -> TimelineLayout:
    """The layout of the table's timeline. Raises: CorruptFile for a layout that does not belong to the version."""
    layout = timeline_layout(properties)
    if layout.kind != version.timeline:
        expected = f"{LAYOUT_VERSION}={version.timeline.number} on a table of version {version}"
        raise CorruptFile(path, 0, expected=expected, found=properties.get(LAYOUT_VERSION, "none"))
    return layout


def _refuse_unknown_features(properties: Mapping[str, str], *, path: str) -> None:
    needed = {
        BASE_FORMAT: ("PARQUET", "ORC", "HFILE", "LANCE"),
        "hoodie.table.format": ("native",),
    }
    for key, known in needed.items():
        value = properties.get(key, "")
        if value and value.lower() not in {k.lower() for k in known}:
            wanted = f"'{known[0]}'" if known else "none"
            raise Unsupported(f"{path}: {key}='{value}': expected {wanted}; this release cannot read such a table")


def _refuse_untold_values(config: TableConfig, *, path: str) -> None:
    if config.drops_partition_columns and not config.version.paths_tell_values:
        raise Unsupported(
            f"{path}: hoodie.datasource.write.drop.partition.columns=true on a table of version {config.version}: its "
            "files lack the partition columns, and its paths do not tell their values: the folder 'default' has the "
            f"rows without a value, beside those of that text. {WAY_TO_FIVE}"
        )


def _table_type(properties: Mapping[str, str], *, path: str) -> TableType:
    text = properties.get("hoodie.table.type", "COPY_ON_WRITE")
    for known in get_args(TableType):
        if text == known:
            return known
    raise CorruptFile(path, 0, expected="COPY_ON_WRITE or MERGE_ON_READ as hoodie.table.type", found=f"'{text}'")


def _key_kind(properties: Mapping[str, str]) -> KeyKind:
    """The key generator: as stored (type, or else class), or inferred from the key and partition columns."""
    kind = properties.get("hoodie.table.keygenerator.type", "").removesuffix("_AVRO")
    if not kind:
        by_class = {
            "SimpleKeyGenerator": "SIMPLE",
            "SimpleAvroKeyGenerator": "SIMPLE",
            "ComplexKeyGenerator": "COMPLEX",
            "ComplexAvroKeyGenerator": "COMPLEX",
            "NonpartitionedKeyGenerator": "NON_PARTITION",
            "NonpartitionedAvroKeyGenerator": "NON_PARTITION",
            "TimestampBasedKeyGenerator": "TIMESTAMP",
            "TimestampBasedAvroKeyGenerator": "TIMESTAMP",
            "CustomKeyGenerator": "CUSTOM",
            "CustomAvroKeyGenerator": "CUSTOM",
        }
        class_name = properties.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
        kind = by_class.get(class_name, "OTHER") if class_name else ""

    if kind:
        return KeyKind(kind) if kind in set(KeyKind) else KeyKind.OTHER

    partition_fields = _fields(properties.get("hoodie.table.partition.fields"))
    if not partition_fields:
        return KeyKind.NON_PARTITION
    if ":" in partition_fields[0]:
        return KeyKind.CUSTOM
    is_simple = len(partition_fields) == 1 and len(_fields(properties.get("hoodie.table.recordkey.fields"))) == 1
    return KeyKind.SIMPLE if is_simple else KeyKind.COMPLEX


def _merge_mode(properties: Mapping[str, str], *, path: str) -> MergeMode:
    """The stored merge mode. If the table stores none, the mode that payload class and ordering column imply.

    Spec: format/log-format.md section 6.1.
    """
    if stored := properties.get("hoodie.record.merge.mode"):
        if stored not in list(MergeMode):
            raise CorruptFile(
                path, 0, expected=f"one of {', '.join(MergeMode)} as hoodie.record.merge.mode", found=f"'{stored}'"
            )
        return MergeMode(stored)

    payload = properties.get("hoodie.compaction.payload.class", "").rpartition(".")[2]
    match payload:
        case "DefaultHoodieRecordPayload" | "EventTimeAvroPayload":
            return MergeMode.EVENT_TIME
        case "OverwriteWithLatestAvroPayload":
            return MergeMode.COMMIT_TIME
        case "":
            ordering = properties.get("hoodie.table.precombine.field") or properties.get("hoodie.table.ordering.fields")
            return MergeMode.EVENT_TIME if ordering else MergeMode.COMMIT_TIME
        case _:
            return MergeMode.CUSTOM


def _bootstrap_base(properties: Mapping[str, str]) -> str | None:
    return properties.get("hoodie.bootstrap.base.path") or None if has_bootstrap_index(properties) else None


def has_bootstrap_index(properties: Mapping[str, str]) -> bool:
    """Whether the index of a bootstrapped table's source files is not switched off."""
    is_on = _flag(properties, "hoodie.bootstrap.index.enable", default="true")
    return is_on and properties.get("hoodie.bootstrap.index.type", "HFILE").upper() != "NO_OP"


def _flag(properties: Mapping[str, str], key: str, *, default: str = "false") -> bool:
    return properties.get(key, default).lower() == "true"


def _fields(text: str | None) -> tuple[str, ...]:
    return tuple(field.strip() for field in (text or "").split(",") if field.strip())
