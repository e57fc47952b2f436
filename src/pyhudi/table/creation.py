"""Making a table: the facts that it is born with, and the folders that Apache Hudi expects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.names import PROPERTIES
from pyhudi.format.properties import encode_table_properties
from pyhudi.storage.protocol import Storage
from pyhudi.table.config import WRITABLE_VERSIONS

_FOLDERS = (
    ".hoodie/.aux/.bootstrap/.partitions",
    ".hoodie/.aux/.bootstrap/.fileids",
    ".hoodie/.temp",
    ".hoodie/timeline/history",
)

_PAYLOADS = {
    "EVENT_TIME_ORDERING": (
        "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    ),
    "COMMIT_TIME_ORDERING": (
        "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    ),
}


@dataclass(frozen=True, slots=True)
class NewTable:
    """What a caller asks of a new table. `create_schema`: Avro text, or None until the first write says."""

    name: str
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]
    table_type: str
    table_version: int
    create_schema: str | None
    properties: Mapping[str, str]


def column_names(value: str | Sequence[str] | None, *, what: str) -> tuple[str, ...]:
    """A column name, a sequence of them, or None, as a tuple."""
    names = (value,) if isinstance(value, str) else tuple(value or ())
    for name in names:
        if not isinstance(name, str) or not name:
            raise Invalid(f"{what}={value!r}: expected a column name or a sequence of column names")
        if "," in name or ":" in name:
            raise Invalid(f"{what}: column name '{name}': expected one without ',' and ':', which separate names")
    if len(set(names)) != len(names):
        raise Invalid(f"{what}={value!r}: expected distinct column names")
    return names


def new_table_properties(new: NewTable) -> dict[str, str]:
    """The properties of a new table of version 8, as Apache Hudi 1.0 stores them.

    Spec: format/layout.md section 2.3. Raises: Invalid or Unsupported for what cannot be made.
    """
    if not new.name:
        raise Invalid("name: expected a table name, found an empty text")
    if new.table_version not in WRITABLE_VERSIONS:
        raise Unsupported(
            f"table_version={new.table_version}: this release creates version {WRITABLE_VERSIONS[0]} only"
        )
    if new.table_type != "COPY_ON_WRITE":
        raise Unsupported(f"table_type='{new.table_type}': this release creates COPY_ON_WRITE tables only")
    if not new.record_key:
        raise Unsupported("record_key=None: this release does not make record keys up yet; name the key columns")
    mode = new.properties.get("hoodie.record.merge.mode") or (
        "EVENT_TIME_ORDERING" if new.ordering else "COMMIT_TIME_ORDERING"
    )
    if mode not in _PAYLOADS:
        raise Unsupported(f"hoodie.record.merge.mode='{mode}': this release knows {' and '.join(_PAYLOADS)}")
    payload, strategy = _PAYLOADS[mode]
    properties = {
        "hoodie.table.name": new.name,
        "hoodie.table.type": new.table_type,
        "hoodie.table.version": str(new.table_version),
        "hoodie.table.initial.version": str(new.table_version),
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.multiple.base.file.formats.enable": "false",
        "hoodie.table.recordkey.fields": ",".join(new.record_key),
        "hoodie.table.keygenerator.type": _key_generator(new),
        "hoodie.record.merge.mode": mode,
        "hoodie.record.merge.strategy.id": strategy,
        "hoodie.compaction.payload.class": payload,
        "hoodie.table.cdc.enabled": "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.partition.metafile.use.base.format": "false",
    }
    if new.partition_by:
        properties["hoodie.table.partition.fields"] = ",".join(new.partition_by)
    if new.ordering:
        properties["hoodie.table.precombine.field"] = ",".join(new.ordering)
    if new.create_schema is not None:
        properties["hoodie.table.create.schema"] = new.create_schema
    return {**properties, **new.properties}


def write_new_table(storage: Storage, properties: Mapping[str, str], *, epoch_ms: int) -> None:
    """Put a table where nothing is. The properties file makes it one, and goes last.

    Raises: Invalid when the place holds a table or other files.
    """
    refuse_occupied(storage)
    for folder in _FOLDERS:
        storage.make_folder(folder)
    if not storage.put_new(PROPERTIES, encode_table_properties(properties, epoch_ms=epoch_ms, is_update=False)):
        raise Invalid(f"{storage.location.uri}: a table was created here at the same moment; open it")


def refuse_occupied(storage: Storage) -> None:
    """Refuse a place where a table, or anything else, lies already. Folders of a creation that died do not count."""
    uri = storage.location.uri
    if storage.head(PROPERTIES) is not None:
        raise Invalid(f"{uri}: expected no table, found one; open it with HudiTable.open, or choose another path")
    other = next(iter(storage.list("", recursive=True)), None)
    if other is not None:
        raise Invalid(f"{uri}: expected an empty place for a new table, found '{other.path}'; choose another path")


def _key_generator(new: NewTable) -> str:
    if not new.partition_by:
        return "NON_PARTITION"
    return "SIMPLE" if len(new.record_key) == len(new.partition_by) == 1 else "COMPLEX"
