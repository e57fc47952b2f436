"""Making a table: the facts that it is born with, and the folders that Apache Hudi expects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.names import PROPERTIES
from pyhudi.format.properties import encode_table_properties
from pyhudi.model.option_table import fact_names
from pyhudi.model.table_facts import Fact, parse_fact
from pyhudi.storage.protocol import Storage
from pyhudi.table.bucket_facts import new_bucket_properties
from pyhudi.table.config import WRITABLE_VERSIONS, TableType
from pyhudi.table.key_properties import SPELLED_ANEW, bare_name, key_properties

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


def column_names(value: str | Sequence[str] | None, *, what: str, has_kinds: bool = False) -> tuple[str, ...]:
    """A column name, a sequence of them, or None, as a tuple. `has_kinds`: each may be followed by `:` and its kind."""
    names = (value,) if isinstance(value, str) else tuple(value or ())
    for name in names:
        if not isinstance(name, str) or not name:
            raise Invalid(f"{what}={value!r}: expected a column name or a sequence of column names")
        if "," in name or ":" in (bare_name(name) if has_kinds else name):
            raise Invalid(f"{what}: column name '{name}': expected one without ',' and ':', which separate names")
    if len(set(map(bare_name, names))) != len(names):
        raise Invalid(f"{what}={value!r}: expected distinct column names")
    return names


def new_table_properties(new: NewTable) -> dict[str, str]:
    """The properties of a new table, as the releases of Apache Hudi that create its version store them.

    Spec: format/layout.md section 2.3. Raises: Invalid or Unsupported for what cannot be made.
    """
    if not new.name:
        raise Invalid("name: expected a table name, found an empty text")
    if new.table_version not in WRITABLE_VERSIONS:
        raise Unsupported(
            f"table_version={new.table_version}: this release creates the versions "
            f"{' and '.join(map(str, WRITABLE_VERSIONS))} only"
        )
    if new.table_type not in get_args(TableType):
        raise Invalid(f"table_type='{new.table_type}': expected {' or '.join(get_args(TableType))}")
    mode = _merge_mode(new)
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
        "hoodie.record.merge.mode": mode,
        "hoodie.table.cdc.enabled": "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.partition.metafile.use.base.format": "false",
    }
    properties |= key_properties(
        record_key=new.record_key, partition_by=new.partition_by, version=new.table_version, options=new.properties
    )
    properties |= _OF_VERSION[new.table_version](new, mode)
    if new.create_schema is not None:
        properties["hoodie.table.create.schema"] = new.create_schema
    anew = (*fact_names(Fact.MERGE_MODE), *SPELLED_ANEW)
    given = {name: text for name, text in new.properties.items() if name not in anew}
    table_type = cast(TableType, new.table_type)
    buckets = new_bucket_properties(new.properties, record_key=new.record_key, table_type=table_type)
    return {**properties, **given, **buckets}


def _merge_mode(new: NewTable) -> str:
    """How rows of one key are settled: as a mode, a payload class or a strategy id says, else by the ordering.

    Raises: Invalid where two of them disagree; Unsupported for a mode that this release does not know.
    """
    stated = [(name, text) for name in fact_names(Fact.MERGE_MODE) if (text := new.properties.get(name))]
    modes = {str(parse_fact(Fact.MERGE_MODE, name, text)) for name, text in stated}
    if len(modes) > 1:
        said = ", ".join(f"{name}='{text}'" for name, text in stated)
        raise Invalid(f"{said}: expected one way to settle rows of one key, found {' and '.join(sorted(modes))}")
    mode = modes.pop() if modes else "EVENT_TIME_ORDERING" if new.ordering else "COMMIT_TIME_ORDERING"
    if mode not in _PAYLOADS:
        said = stated[0][1]
        raise Unsupported(f"hoodie.record.merge.mode='{said}': this release knows {' and '.join(_PAYLOADS)}")
    return mode


def _merging_of_version_8(new: NewTable, mode: str) -> dict[str, str]:
    if len(new.ordering) > 1:
        raise Unsupported(
            f"ordering={', '.join(new.ordering)}: tables of version 8 have one ordering column (Apache Hudi 1.0 cannot "
            "write to others); create the table with table_version=9"
        )
    payload, strategy = _PAYLOADS[mode]
    payload = new.properties.get("hoodie.compaction.payload.class") or payload
    ordering = {"hoodie.table.precombine.field": ",".join(new.ordering)} if new.ordering else {}
    return {"hoodie.record.merge.strategy.id": strategy, "hoodie.compaction.payload.class": payload, **ordering}


def _merging_of_version_9(new: NewTable, mode: str) -> dict[str, str]:
    """Seen: 1.2.0 stores no strategy id beside a mode of its own, and a payload class under another name."""
    ordering = {"hoodie.table.ordering.fields": ",".join(new.ordering)} if new.ordering else {}
    payload = new.properties.get("hoodie.compaction.payload.class")
    legacy = {"hoodie.table.legacy.payload.class": payload} if payload else {}
    return {"hoodie.table.format": "native", **legacy, **ordering}


_OF_VERSION: dict[int, Callable[[NewTable, str], dict[str, str]]] = {8: _merging_of_version_8, 9: _merging_of_version_9}
"""What a version stores that the other does not, by version."""


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
