"""The properties of a new table that describe its keys: key generator, key and partition columns, times in paths."""

from collections.abc import Mapping

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.registered import OwnKind, is_registered
from pyhudi.options.resolve import find_fact
from pyhudi.options.table_facts import PARTITION_KINDS, Fact, show_fact, split_fields
from pyhudi.options.verdicts import fact_names
from pyhudi.versions import KeyGeneratorForm, TableVersion

PREFIX = "hoodie.keygen.timebased."
TYPE, UNIT = f"{PREFIX}timestamp.type", f"{PREFIX}timestamp.scalar.time.unit"
INPUT, DELIMITER = f"{PREFIX}input.dateformat", f"{PREFIX}input.dateformat.list.delimiter.regex"
OUTPUT = f"{PREFIX}output.dateformat"
INPUT_ZONE, OUTPUT_ZONE, BOTH_ZONES = f"{PREFIX}input.timezone", f"{PREFIX}output.timezone", f"{PREFIX}timezone"
OWN_GENERATOR = "USER_PROVIDED"
"""The kind of a key generator that is none of Apache Hudi's. Its class is stored beside it."""
TEXT_TYPES = ("DATE_STRING", "MIXED")

_CLASSES = {
    kind: f"org.apache.hudi.keygen.{name}KeyGenerator"
    for kind, name in {
        "SIMPLE": "Simple", "COMPLEX": "Complex", "NON_PARTITION": "Nonpartitioned", "TIMESTAMP": "TimestampBased",
        "CUSTOM": "Custom",
    }.items()
}  # fmt: skip
"""Key generator -> its class. Table versions that do not store the kind store the class."""


def key_generator_class(kind: str) -> str:
    """The class of a kind of key generator. Raises: KeyError for a kind without one."""
    return _CLASSES[kind]


SPELLED_ANEW = (*fact_names(Fact.KEY_GENERATOR), *fact_names(Fact.PARTITION_BY))
"""Options with several names, which a new table stores under one name each."""


def key_properties(
    *, record_key: tuple[str, ...], partition_by: tuple[str, ...], version: TableVersion, options: Mapping[str, str]
) -> dict[str, str]:
    """The properties that say how keys and paths of a new table are spelled.

    `partition_by`: column names. For a custom key generator they have kinds, as in `day:TIMESTAMP`, unless the options
    state the kinds. Seen: 1.0.2 stores the kind of the key generator, and no key columns if it generates the keys.
    Spec: format/layout.md section 5. Raises: Invalid for columns that do not fit the key generator.
    """
    fields = _typed_fields(partition_by, options)
    kind = _key_generator(record_key, fields, options)
    if kind == "CUSTOM":  # Seen: 1.2.0 takes a column without a kind so
        fields = tuple(field if ":" in field else f"{field}:SIMPLE" for field in fields)
    _refuse_slashed_dates(kind, fields, options)
    stored_as_kind = version.key_generator is KeyGeneratorForm.KIND
    own = _own_generator(options) if kind == "OTHER" else ""
    properties = {}
    if stored_as_kind:
        properties["hoodie.table.keygenerator.type"] = OWN_GENERATOR if own else kind
    if own or not stored_as_kind:
        properties["hoodie.table.keygenerator.class"] = own or _CLASSES[kind]

    if record_key:
        properties["hoodie.table.recordkey.fields"] = ",".join(record_key)
    if fields:
        stored = fields if stored_as_kind else tuple(map(bare_name, fields))
        properties["hoodie.table.partition.fields"] = ",".join(stored)

    is_time_based = kind.startswith("TIMESTAMP") or any(field.endswith(":TIMESTAMP") for field in fields)
    takes_numbers = is_time_based and options.get(TYPE, "").strip().upper() not in ("", *TEXT_TYPES)
    if takes_numbers and not any(name in options for name in (OUTPUT_ZONE, BOTH_ZONES)):
        properties[OUTPUT_ZONE] = "UTC"  # else paths would depend on the time zone of the machine that writes
    return properties


def bare_name(field: str) -> str:
    """A partition column without its kind."""
    return field.partition(":")[0]


def _typed_fields(partition_by: tuple[str, ...], options: Mapping[str, str]) -> tuple[str, ...]:
    """The partition columns, with the kinds that the argument or the options state."""
    names = tuple(map(bare_name, partition_by))
    asked = find_fact(options, Fact.PARTITION_BY)
    if asked is not None and asked != names:
        raise Invalid(f"partition_by={', '.join(names)}: contradicts the options, which say '{show_fact(asked)}'")

    kinds: dict[str, str] = {}
    stated = [partition_by, *(split_fields(options.get(name, "")) for name in fact_names(Fact.PARTITION_BY))]
    for field in (field for fields in stated for field in fields):
        name, colon, kind = (part.strip() for part in field.partition(":"))
        if colon and kind.upper() not in PARTITION_KINDS:
            raise Invalid(f"partition column '{field}': expected '{name}', '{name}:SIMPLE' or '{name}:TIMESTAMP'")
        if colon and kinds.setdefault(name, kind.upper()) != kind.upper():
            raise Invalid(f"partition column '{name}': expected one kind, found {kinds[name]} and {kind.upper()}")
    return tuple(f"{name}:{kinds[name]}" if name in kinds else name for name in names)


def _key_generator(record_key: tuple[str, ...], fields: tuple[str, ...], options: Mapping[str, str]) -> str:
    """The kind that the options name, else the one that the columns imply, as Apache Hudi infers it."""
    named = find_fact(options, Fact.KEY_GENERATOR)
    inferred = _inferred(record_key, fields)
    kind = inferred if named is None else str(named)
    shown = ", ".join(fields) or "none"

    match kind:
        case "OTHER" if not _own_generator(options):
            raise Unsupported(
                "a key generator of your own: expected one of Apache Hudi's, or the name of one that is registered in "
                "this process (pyhudi.register_key_generator) as hoodie.datasource.write.keygenerator.class"
            )
        case "OTHER" if any(":" in field for field in fields) or not record_key:
            raise Invalid(
                f"key generator '{_own_generator(options)}': expected record key columns, and partition columns "
                f"without kinds, found key {', '.join(record_key) or 'none'} and partition {shown}"
            )
        case "NON_PARTITION" if fields:
            raise Invalid(f"key generator NON_PARTITION: expected no partition column, found {shown}")
        case "SIMPLE" if inferred != "SIMPLE":
            raise Invalid(
                f"key generator SIMPLE: expected one key column and one partition column, found key "
                f"{', '.join(record_key) or 'none'} and partition {shown}"
            )
        case "TIMESTAMP" if len(fields) != 1 or ":" in fields[0]:
            raise Invalid(f"key generator TIMESTAMP: expected one partition column, without a kind, found {shown}")
        case "SIMPLE" | "COMPLEX" | "TIMESTAMP" if any(":" in field for field in fields):
            raise Invalid(f"key generator {kind}: expected partition columns without kinds, found {shown}")
    return kind


def _refuse_slashed_dates(kind: str, fields: tuple[str, ...], options: Mapping[str, str]) -> None:
    """Refuse `2026/01/05` as the path of `2026-01-05` where Apache Hudi 1.2.0 refuses it, or makes other paths."""
    if not find_fact(options, Fact.HAS_SLASHED_DATES):
        return
    name = fact_names(Fact.HAS_SLASHED_DATES)[0]
    if len(fields) != 1 or kind not in ("SIMPLE", "COMPLEX"):
        raise Invalid(
            f"option '{name}'='true': expected one partition column, whose path is its text, found "
            f"{', '.join(fields) or 'none'} with key generator {kind}; leave the option out"
        )
    if find_fact(options, Fact.IS_HIVE_STYLE):
        raise Invalid(
            f"option '{name}'='true': expected no '{fact_names(Fact.IS_HIVE_STYLE)[0]}' beside it, found 'true'; "
            "leave one of them out"
        )


def _own_generator(options: Mapping[str, str]) -> str:
    """The registered key generator that the options name. Empty if they name none."""
    named = (options.get(name, "").strip() for name in fact_names(Fact.KEY_GENERATOR))
    return next((name for name in named if is_registered(OwnKind.KEY_GENERATOR, name)), "")


def _inferred(record_key: tuple[str, ...], fields: tuple[str, ...]) -> str:
    """Spec: format/layout.md section 5, "Inference"."""
    if not fields:
        return "NON_PARTITION"
    if ":" in fields[0]:
        return "CUSTOM"
    return "SIMPLE" if len(record_key) <= 1 and len(fields) == 1 else "COMPLEX"
