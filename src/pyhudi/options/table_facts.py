"""The facts of a table that options may repeat, and how each of their spellings is parsed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from pyhudi.errors import Invalid
from pyhudi.versions import VERSIONS

PARTITION_KINDS = ("SIMPLE", "TIMESTAMP")
"""The kinds of a custom key generator's partition field: the value itself, or a time formatted from it."""

CHANGE_MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
"""What the change logs of a table may hold beside the operation."""

FactValue: TypeAlias = str | bool | int | tuple[str, ...]


class Fact(StrEnum):
    """The facts, each named like its field in `TableFacts`."""

    NAME = "name"
    DATABASE = "database"
    TABLE_TYPE = "table_type"
    VERSION = "version"
    LAYOUT = "timeline_layout"
    RECORD_KEY = "record_key"
    PARTITION_BY = "partition_by"
    ORDERING = "ordering"
    KEY_GENERATOR = "key_generator"
    MERGE_MODE = "merge_mode"
    PARTIAL_UPDATE_MODE = "partial_update_mode"
    UNAVAILABLE_VALUE = "unavailable_value"
    DELETE_FIELD = "delete_field"
    DELETE_MARKER = "delete_marker"
    IS_HIVE_STYLE = "is_hive_style"
    IS_URL_ENCODED = "is_url_encoded"
    HAS_SLASHED_DATES = "has_slashed_dates"
    DROPS_PARTITION_COLUMNS = "drops_partition_columns"
    HAS_META_FIELDS = "has_meta_fields"
    BASE_FILE_FORMAT = "base_file_format"
    IS_CDC_ENABLED = "is_cdc_enabled"
    CHANGE_MODE = "change_mode"
    TIMEZONE = "timezone"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The facts of a table, as options are checked against them.

    `partition_by`: column names without kinds. `key_generator`: SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP, CUSTOM, or
    OTHER for any other. `merge_mode`: as `hoodie.record.merge.mode` spells it. `timezone`: UTC or LOCAL.
    `payload`: the payload class, if the table was created with one. It then says more than the mode.
    `legacy_payload`: the same, where the table states by other properties what the class does.
    `key_generator_class`: as the table names it.
    """

    name: str
    table_type: str
    version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]
    key_generator: str
    merge_mode: str
    is_hive_style: bool = False
    is_url_encoded: bool = False
    has_slashed_dates: bool = False
    timezone: str = "UTC"
    database: str = ""
    drops_partition_columns: bool = False
    has_meta_fields: bool = True
    base_file_format: str = "PARQUET"
    is_cdc_enabled: bool = False
    change_mode: str = "DATA_BEFORE_AFTER"
    payload: str = ""
    legacy_payload: str = ""
    partial_update_mode: str = ""
    unavailable_value: str = ""
    key_generator_class: str = ""
    delete_field: str = ""
    delete_marker: str = ""

    @property
    def timeline_layout(self) -> int:
        return VERSIONS[self.version].timeline.number

    def get(self, fact: Fact) -> FactValue:
        value: FactValue = getattr(self, fact.value)
        return value


def parse_fact(fact: Fact, option: str, text: str) -> FactValue:
    """The value of a fact, from the text of one of its options.

    Raises: Invalid for text that cannot be a value of the fact.
    """
    match fact:
        case Fact.RECORD_KEY | Fact.ORDERING:
            return split_fields(text)
        case Fact.PARTITION_BY:
            return tuple(_partition_field(option, field) for field in split_fields(text))
        case Fact.VERSION | Fact.LAYOUT:
            if not (text.isascii() and text.strip().isdigit()):
                raise Invalid(f"option '{option}'='{text}': expected a whole number")
            return int(text)
        case (
            Fact.IS_HIVE_STYLE
            | Fact.IS_URL_ENCODED
            | Fact.HAS_SLASHED_DATES
            | Fact.DROPS_PARTITION_COLUMNS
            | Fact.HAS_META_FIELDS
            | Fact.IS_CDC_ENABLED
        ):
            return parse_flag(option, text)
        case Fact.KEY_GENERATOR:
            return _key_generator(text)
        case Fact.MERGE_MODE:
            return _merge_mode(text)
        case Fact.CHANGE_MODE:
            return _change_mode(option, text)
        case Fact.TABLE_TYPE | Fact.BASE_FILE_FORMAT | Fact.TIMEZONE | Fact.PARTIAL_UPDATE_MODE:
            return text.strip().upper()
        case Fact.NAME | Fact.DATABASE | Fact.UNAVAILABLE_VALUE | Fact.DELETE_FIELD | Fact.DELETE_MARKER:
            return text

    raise AssertionError(fact)


def split_fields(text: str) -> tuple[str, ...]:
    """The column names in a list with commas."""
    return tuple(field.strip() for field in text.split(",") if field.strip())


def parse_flag(option: str, text: str) -> bool:
    """`true` or `false`, in upper or lower case. Raises: Invalid for anything else."""
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise Invalid(f"option '{option}'='{text}': expected true or false")
    return folded == "true"


def short_class_name(text: str) -> str:
    """A class of Apache Hudi without its package. Any other text stays as it is."""
    text = text.strip()
    return text.rpartition(".")[2] if text.startswith(("org.apache.hudi.", "com.uber.hoodie.")) else text


def show_fact(value: FactValue) -> str:
    """A fact in the spelling of an option."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _partition_field(option: str, field: str) -> str:
    name, colon, kind = field.partition(":")
    if colon and kind.strip().upper() not in PARTITION_KINDS:
        raise Invalid(
            f"option '{option}': partition field '{field}': expected '{name}', '{name}:SIMPLE' or '{name}:TIMESTAMP'"
        )
    return name.strip()


def _key_generator(text: str) -> str:
    """The kind of a key generator, from a kind or a class. Classes for Avro rows count as the plain ones."""
    kind = short_class_name(text)
    by_class = {
        "SimpleKeyGenerator": "SIMPLE",
        "ComplexKeyGenerator": "COMPLEX",
        "NonpartitionedKeyGenerator": "NON_PARTITION",
        "TimestampBasedKeyGenerator": "TIMESTAMP",
        "CustomKeyGenerator": "CUSTOM",
    }

    kind = by_class.get(kind.replace("Avro", ""), kind.upper().removesuffix("_AVRO"))
    return kind if kind in by_class.values() else "OTHER"


def _change_mode(option: str, text: str) -> str:
    """What change logs hold. Releases before 0.14 spell it in lower case."""
    folded = text.strip().upper()
    if folded not in CHANGE_MODES:
        raise Invalid(f"option '{option}'='{text}': expected {' or '.join(CHANGE_MODES)}")
    return folded


def _merge_mode(text: str) -> str:
    """The merge mode, from a mode, a payload class or a strategy id. Spec: format/log-format.md section 6."""
    same = {
        "COMMIT_TIME_ORDERING": ("overwritewithlatestavropayload", "ce9acb64-bde0-424c-9b91-f6ebba25356d"),
        "EVENT_TIME_ORDERING": (
            "defaulthoodierecordpayload",
            "eventtimeavropayload",
            "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        ),
    }
    folded = short_class_name(text).lower()
    return next((mode for mode, texts in same.items() if folded in (mode.lower(), *texts)), "CUSTOM")
