"""Making a table: the facts that it is born with, and the folders that Apache Hudi expects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never, cast, get_args

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys.bucket_counts import CONFIGS, BucketCounts
from pyhudi.format.keys.hashing_metadata import INITIAL_INSTANT
from pyhudi.format.log.changes import ChangeMode
from pyhudi.format.names import HOODIE, PROPERTIES
from pyhudi.format.properties import encode_table_properties
from pyhudi.merge.mergers import PAYLOAD_ID, find_payload_merger
from pyhudi.merge.payloads import (
    DELETE_FIELD,
    DELETE_MARKER,
    LEGACY_PAYLOADS,
    MERGE_PROPERTY,
    UNAVAILABLE,
    merge_property,
    merge_rules,
)
from pyhudi.merge.rules import MergeMode
from pyhudi.options.arguments import one_or_several_texts
from pyhudi.options.entries import Kind
from pyhudi.options.resolve import check_value, find_fact
from pyhudi.options.table_facts import Fact, FactValue, parse_fact, short_class_name, show_fact
from pyhudi.options.verdicts import fact_names, find_entry
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.bucket_facts import BUCKET_OPTIONS, COUNT_RULES, new_bucket_properties
from pyhudi.table.facts.config import BASE_FORMAT, CDC_ENABLED, CDC_MODE, TableType
from pyhudi.table.facts.key_properties import SPELLED_ANEW, bare_name, key_properties
from pyhudi.table.facts.stored_options import refuse_unstored
from pyhudi.timeline.layout import timeline_layout
from pyhudi.versions import NEW_TABLE_VERSION, VERSIONS, WRITABLE_TEXT, Merging, TableVersion

_FOLDERS = (".hoodie/.aux/.bootstrap/.partitions", ".hoodie/.aux/.bootstrap/.fileids", ".hoodie/.temp")

BOOTSTRAP_MARK = f"{HOODIE}/.pyhudi_bootstrap"
"""A file that says: a bootstrap of this folder is under way, or died. Whatever else lies here is its own."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """What a caller asks of a new table. `create_schema`: Avro text, or None if the first write shall decide."""

    name: str
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]
    table_type: str
    table_version: int
    create_schema: str | None
    properties: Mapping[str, str]


def column_names(value: str | Iterable[str] | None, *, what: str, has_kinds: bool = False) -> tuple[str, ...]:
    """A column name, a sequence of them, or None, as a tuple. `has_kinds`: each may be followed by `:` and its kind."""
    names = () if value is None else one_or_several_texts(value, what=what, of="column names")
    for name in names:
        if not name:
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
    if not new.name or not isinstance(new.name, str):
        raise Invalid(f"name: expected a table name, found {new.name!r}")
    if isinstance(new.table_version, bool) or not isinstance(new.table_version, int):
        raise Invalid(f"table_version={new.table_version!r}: expected a number, such as {NEW_TABLE_VERSION}")
    version = VERSIONS.get(new.table_version)
    if version is None or not version.is_writable:
        raise Unsupported(f"table_version={new.table_version}: this release creates the versions {WRITABLE_TEXT} only")
    if new.table_type not in get_args(TableType):
        raise Invalid(f"table_type='{new.table_type}': expected {' or '.join(get_args(TableType))}")

    for name, text in new.properties.items():
        refuse_unstored(name, text)
        if (entry := find_entry(name)).kind is Kind.PROPERTY:
            check_value(name, text, entry)
    _refuse_contradictions(new)
    mode = _merge_mode(new, version)

    properties = {
        "hoodie.table.name": new.name,
        "hoodie.table.type": new.table_type,
        "hoodie.table.version": str(version),
        "hoodie.table.timeline.timezone": "UTC",
        BASE_FORMAT: str(find_fact(new.properties, Fact.BASE_FILE_FORMAT) or "PARQUET"),
        **_change_data(new, version),
        "hoodie.populate.meta.fields": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.partition.metafile.use.base.format": "false",
    }

    properties |= key_properties(
        record_key=new.record_key, partition_by=new.partition_by, version=version, options=new.properties
    )
    properties |= version.new_timeline_properties()

    if version.merging is not Merging.PAYLOAD:
        properties["hoodie.record.merge.mode"] = mode
    if version.has_base_format_flag:
        properties["hoodie.table.multiple.base.file.formats.enable"] = "false"
    properties |= _merging(new, version, mode)
    if new.create_schema is not None:
        properties["hoodie.table.create.schema"] = new.create_schema

    table_type = cast(TableType, new.table_type)
    buckets = new_bucket_properties(new.properties, record_key=new.record_key, table_type=table_type)
    anew = _spelled_anew(version, has_buckets=bool(buckets))
    given = {name: text for name, text in new.properties.items() if name not in anew}
    made = {**properties, **given, **buckets}
    merge_rules(made, version=version, path=f"new table '{new.name}'")
    return made


def _spelled_anew(version: TableVersion, *, has_buckets: bool) -> tuple[str, ...]:
    """The options that a table stores under the one name of its version, or in a file of their own."""
    anew = (
        *fact_names(Fact.VERSION), *fact_names(Fact.MERGE_MODE), *fact_names(Fact.BASE_FILE_FORMAT), *SPELLED_ANEW,
        CDC_ENABLED, CDC_MODE,
    )  # fmt: skip
    if version.merging is Merging.MODE:
        anew = (*anew, DELETE_FIELD, DELETE_MARKER, UNAVAILABLE)
    return (*anew, *BUCKET_OPTIONS) if has_buckets else (*anew, COUNT_RULES)


def _refuse_contradictions(new: NewTable) -> None:
    """The rest of the properties follows from the arguments. Raises: Invalid for properties that say otherwise.

    Partition columns are looked at where their kinds are.
    """
    facts: dict[str, tuple[Fact, FactValue]] = {
        "name": (Fact.NAME, new.name),
        "record_key": (Fact.RECORD_KEY, new.record_key),
        "ordering": (Fact.ORDERING, new.ordering),
        "table_type": (Fact.TABLE_TYPE, new.table_type),
        "table_version": (Fact.VERSION, new.table_version),
    }
    for argument, (fact, value) in facts.items():
        asked = find_fact(new.properties, fact)
        if asked is not None and asked != value:
            said = show_fact(asked)
            raise Invalid(
                f"{argument}={show_fact(value)}: contradicts the options, which say '{said}'; give one of them"
            )


def _change_data(new: NewTable, version: TableVersion) -> dict[str, str]:
    """Whether writers keep change logs, and what these hold. Seen: Apache Hudi stores the latter with the former only.

    Raises: Invalid for a value that is none.
    """
    if not find_fact(new.properties, Fact.IS_CDC_ENABLED):
        return {CDC_ENABLED: "false"}
    mode = find_fact(new.properties, Fact.CHANGE_MODE) or ChangeMode.BEFORE_AFTER.value
    text = str(mode)
    return {CDC_ENABLED: "true", CDC_MODE: text.lower() if version.has_low_change_modes else text}


def _strategy(new: NewTable) -> str:
    """The merge strategy that the options name; empty if they name none."""
    named = (new.properties.get(name, "") for name in fact_names(Fact.MERGE_MODE) if name.endswith("merge.strategy.id"))
    return next(filter(None, named), "")


def _merge_mode(new: NewTable, version: TableVersion) -> str:
    """The merge mode: as the options state it (as mode, payload class or strategy id), else as the ordering implies.

    `CUSTOM` beside a payload class that version 9 has other properties for means that class. Seen: 1.2.0.
    Raises: Invalid if two options disagree.
    """
    legacy = LEGACY_PAYLOADS if version.merging is Merging.MODE else {}
    stated = [(name, text) for name in fact_names(Fact.MERGE_MODE) if (text := new.properties.get(name))]
    modes = {
        str(known.mode if (known := legacy.get(short_class_name(text))) else parse_fact(Fact.MERGE_MODE, name, text))
        for name, text in stated
    }

    if any(short_class_name(text) in legacy for _, text in stated):
        modes.discard(MergeMode.CUSTOM.value)
    if len(modes) > 1:
        said = ", ".join(f"{name}='{text}'" for name, text in stated)
        raise Invalid(f"{said}: expected one way to settle rows of one key, found {' and '.join(sorted(modes))}")
    mode = modes.pop() if modes else "EVENT_TIME_ORDERING" if new.ordering else "COMMIT_TIME_ORDERING"
    return mode


def _merging(new: NewTable, version: TableVersion, mode: str) -> dict[str, str]:
    """The properties about merging that the table stores, beside the mode."""
    match version.merging:
        case Merging.PAYLOAD:
            return _merging_by_payload(new, version, mode)
        case Merging.MODE_AND_PAYLOAD:
            return _merging_by_mode_and_payload(new, version, mode)
        case Merging.MODE:
            return _merging_by_mode(new, version, mode)
    assert_never(version.merging)


def _merging_by_payload(new: NewTable, version: TableVersion, mode: str) -> dict[str, str]:
    """Seen: 0.15.0 stores the same strategy id for every payload class. The payload class alone decides."""
    if mode not in _PAYLOADS and find_payload_merger(_payload(new)) is None:
        raise Unsupported(
            f"hoodie.compaction.payload.class='{_payload(new)}': this release creates tables of version "
            f"{new.table_version} where the row of a key wins that came last, or the one with the greatest ordering "
            "value, or a payload class with a registered merger (pyhudi.register_payload_class); create the table with "
            "table_version=9"
        )
    return {
        version.strategy_property: _PAYLOADS["EVENT_TIME_ORDERING"][1],
        **_payload_and_ordering(new, version, mode),
    }


def _payload_and_ordering(new: NewTable, version: TableVersion, mode: str) -> dict[str, str]:
    if len(new.ordering) > 1 and not version.has_many_orderings:
        raise Unsupported(
            f"ordering={', '.join(new.ordering)}: tables of version {new.table_version} have one ordering column "
            "(Apache Hudi before 1.1 cannot write to others); create the table with table_version=9"
        )
    payload = _payload(new) or (_PAYLOADS[mode][0] if mode in _PAYLOADS else "")
    ordering = _ordering(new, version)
    return {**({"hoodie.compaction.payload.class": payload} if payload else {}), **ordering}


def _ordering(new: NewTable, version: TableVersion) -> dict[str, str]:
    return {version.ordering_property: ",".join(new.ordering)} if new.ordering else {}


def _merging_by_mode_and_payload(new: NewTable, version: TableVersion, mode: str) -> dict[str, str]:
    stated = _payload_and_ordering(new, version, mode)
    _, strategy = _PAYLOADS.get(mode, ("", _strategy(new)))
    strategy = strategy or (PAYLOAD_ID if "hoodie.compaction.payload.class" in stated else "")
    return {**({version.strategy_property: strategy} if strategy else {}), **stated}


def _merging_by_mode(new: NewTable, version: TableVersion, mode: str) -> dict[str, str]:
    """Seen: 1.2.0 stores no strategy id for the built-in modes. It stores a payload class under another name, with
    properties that describe what the class does.
    """
    payload, strategy = _payload(new), _strategy(new)
    ordering = _ordering(new, version)

    if (known := LEGACY_PAYLOADS.get(short_class_name(payload))) is not None:
        merging = {"hoodie.table.legacy.payload.class": payload, **known.properties}
        if known.ordering:
            merging[version.ordering_property] = known.ordering
        return {"hoodie.table.format": "native", **ordering, **merging}

    custom = {}
    if mode == MergeMode.CUSTOM:
        custom = {version.strategy_property: strategy or PAYLOAD_ID}
        custom |= {"hoodie.compaction.payload.class": payload} if payload else {}

    marks = {
        f"{MERGE_PROPERTY}{name}": text
        for name in (DELETE_FIELD, DELETE_MARKER, UNAVAILABLE)
        if (text := merge_property(new.properties, name))
    }
    return {"hoodie.table.format": "native", **custom, **marks, **ordering}


def _payload(new: NewTable) -> str:
    names = ("hoodie.compaction.payload.class", "hoodie.datasource.write.payload.class")
    return next((text for name in names if (text := new.properties.get(name, "").strip())), "")


def write_new_table(
    storage: Storage, properties: Mapping[str, str], *, epoch_ms: int, counts: BucketCounts | None = None
) -> None:
    """Create a table in an empty folder. The properties file makes it a table, so it is written last.

    `counts`: the rules for the bucket counts of its partitions.

    Raises: Invalid when the folder holds a table or other files.
    """
    refuse_occupied(storage)
    content = encode_table_properties(properties, epoch_ms=epoch_ms, is_update=False)
    make_folders(storage, properties)
    if counts is not None:
        storage.put(counts.path, counts.encode())
    if not storage.put_new(PROPERTIES, content):
        raise Invalid(f"{storage.location.uri}: a table was created here at the same moment; open it")


def make_folders(storage: Storage, properties: Mapping[str, str]) -> None:
    """Make the folders that Apache Hudi expects in every table."""
    for folder in (*_FOLDERS, timeline_layout(properties).history_folder):
        storage.make_folder(folder)


def refuse_occupied(storage: Storage) -> None:
    """Refuse a folder where a table, or anything else, lies already.

    Folders of a creation that died do not count, nor do its rules for bucket counts; nor do locks: of those who waited
    for a table that was taken back.
    """
    uri = storage.location.uri
    if storage.head(PROPERTIES) is not None:
        raise Invalid(f"{uri}: expected no table, found one; open it with HudiTable.open, or choose another path")
    if storage.head(BOOTSTRAP_MARK) is not None:
        raise Invalid(
            f"{uri}: expected an empty folder for a new table, found what a bootstrap left that runs or died: run that "
            "bootstrap again, or delete the folder"
        )
    files = storage.list("", recursive=True)
    own = (f"{HOODIE}/.pyhudi_", f"{CONFIGS}/{INITIAL_INSTANT}")
    other = next((file for file in files if not file.path.startswith(own)), None)
    if other is not None:
        raise Invalid(f"{uri}: expected an empty folder for a new table, found '{other.path}'; choose another path")
