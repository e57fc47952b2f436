"""TBLPROPERTIES of a statement as the facts of a table, and the facts of a table as TBLPROPERTIES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyhudi.api.datasource import stored_options
from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid
from pyhudi.options.entries import Kind
from pyhudi.options.names import WRITE_VERSION, canonical_name
from pyhudi.options.resolve import find_fact, merge_options
from pyhudi.options.table_facts import Fact, FactValue, split_fields
from pyhudi.options.verdicts import fact_names, find_entry
from pyhudi.table.facts.bucket_facts import BUCKET_OPTIONS
from pyhudi.versions import NEW_TABLE_VERSION, VERSIONS

_KEY: Final = "hoodie.datasource.write.recordkey.field"
_ORDERING: Final = "hoodie.table.ordering.fields"
_TYPE: Final = "hoodie.datasource.write.table.type"

_SQL_NAMES: Final = {
    "primarykey": _KEY,
    "precombinefield": _ORDERING,
    "orderingfields": _ORDERING,
    "type": _TYPE,
    "payloadclass": "hoodie.datasource.write.payload.class",
    "recordmergemode": "hoodie.record.merge.mode",
    "recordmergestrategyid": "hoodie.record.merge.strategy.id",
}
"""Names of SQL's own for options, in small letters."""

_TYPES: Final = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_SHORT: Final = {name: short for short, name in _TYPES.items()}

_ARGUMENTS: Final = (Fact.NAME, Fact.RECORD_KEY, Fact.PARTITION_BY, Fact.ORDERING, Fact.TABLE_TYPE, Fact.VERSION)
PARTITION_PATH_OPTION = "hoodie.datasource.write.partitionpath.field"
_GENERATOR, _TIMES = "hoodie.table.keygenerator.type", "hoodie.keygen.timebased."
_PAYLOAD = "hoodie.compaction.payload.class"
_PAYLOADS = (_PAYLOAD, "hoodie.table.legacy.payload.class")
_MERGES = ("hoodie.record.merge.mode", "hoodie.record.merge.strategy.id")
_MERGE_DETAILS = (Fact.DELETE_FIELD, Fact.DELETE_MARKER, Fact.PARTIAL_UPDATE_MODE, Fact.UNAVAILABLE_VALUE)
_STAY = (
    "hoodie.database.name", "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode", "hoodie.table.cdc.enabled",
    "hoodie.table.cdc.supplemental.logging.mode", "hoodie.populate.meta.fields", "hoodie.table.timeline.timezone",
    "hoodie.datasource.write.drop.partition.columns", "hoodie.table.base.file.format",
)  # fmt: skip
_HIVE_STYLE: Final = "hoodie.datasource.write.hive_style_partitioning"


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """What properties say of a table; None where they say nothing. `others`: the options that are left.

    `partition_by`: with the kinds that are said, as in `day:TIMESTAMP`.
    """

    record_key: tuple[str, ...] | None
    ordering: tuple[str, ...] | None
    partition_by: tuple[str, ...] | None
    table_type: str | None
    version: int | None
    others: Mapping[str, str]


def stated_facts(properties: Mapping[str, str]) -> StatedFacts:
    """The facts that TBLPROPERTIES state, under SQL's names or those of options. Raises: Invalid, Unsupported."""
    options: dict[str, str] = {}
    for name, text in properties.items():
        known = _SQL_NAMES.get(name.lower())
        if known is None and not name.startswith("hoodie."):
            continue  # a property of the catalog's own
        options[known or name] = _type_name(text) if known == _TYPE else text
    merged = merge_options(write=options, opened=None, table={})
    found = {fact: find_fact(merged, fact) for fact in _ARGUMENTS}
    version = found[Fact.VERSION]
    return StatedFacts(
        record_key=_columns(found[Fact.RECORD_KEY]),
        ordering=_columns(found[Fact.ORDERING]),
        partition_by=None if found[Fact.PARTITION_BY] is None else _fields_with_kinds(merged),
        table_type=None if found[Fact.TABLE_TYPE] is None else str(found[Fact.TABLE_TYPE]),
        version=None if version is None else int(str(version)),
        others={name: text for name, text in merged.items() if name not in _names_of_arguments()},
    )


def facts_of_session(options: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """What `SET hoodie.…` says of a new table besides its name and columns, where TBLPROPERTIES say nothing of it.

    Apache Hudi passes it over when a table is made, and then refuses, or obeys, it in each write.
    """
    own = {name: text for name, text in options.items() if fact_of(name) in (Fact.TABLE_TYPE, Fact.VERSION)}
    stored = stored_options({**options, **properties})  # what is said of buckets counts where the other side has them
    found = {**own, **{name: text for name, text in stored.items() if name in options and name not in properties}}
    return _open(found, properties)


def facts_like(table: HudiTable, properties: Mapping[str, str], partition_by: Sequence[str]) -> dict[str, str]:
    """What `CREATE TABLE … LIKE` leaves open of the new table: as the other table has it."""
    said = {_SQL_NAMES.get(name.lower(), name): text for name, text in properties.items()}
    like = {
        _TYPE: table.table_type,
        WRITE_VERSION: str(table.table_version) if VERSIONS[table.table_version].is_writable else "",
        _KEY: ",".join(table.record_key), _ORDERING: ",".join(table.ordering),
        **staying_facts(table, said, partition_by),
        **{name: text for name in BUCKET_OPTIONS if (text := table.properties.get(name))},
    }  # fmt: skip
    return _open({name: text for name, text in like.items() if text and name not in said}, properties)


def _open(options: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """The options of which TBLPROPERTIES leave the fact open. The database is the one of the new name."""
    stated = {*map(fact_of, properties), Fact.DATABASE} - {None}
    return {name: text for name, text in options.items() if fact_of(name) not in stated}


def staying_facts(stored: HudiTable, said: Mapping[str, str], partition_by: Sequence[str]) -> dict[str, str]:
    """Facts that stay when a table is made anew, where nothing is said that they hang on: `said`, `partition_by`."""
    names = list(_STAY)
    kinds: dict[str, str] = {}
    if not (_says(said, Fact.MERGE_MODE, Fact.ORDERING) or any("payload" in name for name in said)):
        payload = next((text for name in _PAYLOADS if (text := stored.properties.get(name))), "")
        kinds |= {_PAYLOAD: payload} if payload else {}
        names += [*(() if payload else _MERGES), *(name for fact in _MERGE_DETAILS for name in fact_names(fact))]

    has_other_keys = bool(partition_by) or _says(said, Fact.KEY_GENERATOR, Fact.RECORD_KEY, Fact.PARTITION_BY)
    if not has_other_keys:
        names += fact_names(Fact.HAS_SLASHED_DATES)
    if not has_other_keys and stored.properties.get(_GENERATOR) in ("TIMESTAMP", "CUSTOM"):
        kinds[PARTITION_PATH_OPTION] = stored.properties["hoodie.table.partition.fields"]
        names += [_GENERATOR, *(name for name in stored.properties if name.startswith(_TIMES))]
    return {**{name: stored.properties[name] for name in names if name in stored.properties}, **kinds}


def _says(options: Mapping[str, str], *facts: Fact) -> bool:
    return any(name in options for fact in facts for name in fact_names(fact))


def fact_of(name: str) -> Fact | None:
    """The fact of a table that a property of SQL, or an option, states; None if it states none."""
    known = _SQL_NAMES.get(name.lower(), name)
    return find_entry(canonical_name(known)).fact if known.startswith("hoodie.") else None


def options_stored(table: HudiTable, names: Sequence[str]) -> list[str]:
    """Those of the names that are options which the table stores, under whatever spelling; no facts of the table."""
    stored = set(map(canonical_name, table.properties))
    options = (name for name in names if canonical_name(name) in stored)
    return [name for name in options if find_entry(canonical_name(name)).kind not in (Kind.FACT, Kind.PROPERTY)]


def new_table(
    path: str, *, name: str, database: str, stated: StatedFacts, partition_by: Sequence[str], schema: object
) -> HudiTable:
    """Make a table as SQL makes it: partition paths in the style of Hive, unless properties say otherwise, or ask for
    dates with slashes, which have no such style.
    """
    is_hive_style = not find_fact(stated.others, Fact.HAS_SLASHED_DATES)
    others = {_HIVE_STYLE: str(is_hive_style).lower(), "hoodie.database.name": database, **stated.others}
    return HudiTable.create(
        path,
        name=name,
        record_key=stated.record_key,
        partition_by=partition_by or None,
        ordering=stated.ordering,
        schema=schema,
        table_type=stated.table_type or "COPY_ON_WRITE",
        table_version=stated.version or NEW_TABLE_VERSION,
        properties=others,
    )


def with_kinds(said: Sequence[str], stated: Sequence[str]) -> Sequence[str]:
    """The columns of PARTITIONED BY, with the kinds that properties state: `city:SIMPLE` for `city`.

    Raises: Invalid where the two name different columns.
    """
    if not said or not stated:
        return said or stated
    if [name.lower() for name in said] != [one.partition(":")[0].lower() for one in stated]:
        raise Invalid(
            f"PARTITIONED BY ({', '.join(said)}): expected the columns of hoodie.datasource.write.partitionpath.field, "
            f"found '{','.join(stated)}' there; leave one of the two out"
        )
    return stated


def refuse_other_facts(table: HudiTable, stated: StatedFacts, partition_by: Sequence[str]) -> None:
    """Raises: Invalid where a statement about a table that is there says otherwise than the table."""
    pairs: list[tuple[str, object, object]] = [
        ("primaryKey", stated.record_key, table.record_key),
        ("preCombineField", stated.ordering, table.ordering),
        ("type", stated.table_type, table.table_type),
        ("PARTITIONED BY", tuple(one.partition(":")[0] for one in partition_by) or None, table.partition_by),
        (WRITE_VERSION, stated.version, table.table_version if stated.version else None),
    ]
    for what, said, stored in pairs:
        if said is not None and said != stored:
            raise Invalid(
                f"{table.path}: {what}: expected {_shown(stored)}, as the table there has it, found {_shown(said)}; "
                "leave it out, or choose another LOCATION"
            )


def shown_properties(table: HudiTable, given: Mapping[str, str]) -> dict[str, str]:
    """What the catalog keeps of a table: the properties as they were given, with the table's own facts."""
    facts = {"type": _SHORT[table.table_type]}
    if table.record_key:
        facts["primaryKey"] = ",".join(table.record_key)
    if table.ordering:
        facts["preCombineField"] = ",".join(table.ordering)
    others = {name: text for name, text in given.items() if name.lower() not in _SQL_NAMES}
    return {**others, **facts}


def _type_name(text: str) -> str:
    found = _TYPES.get(text.lower(), text.upper())
    if found not in _SHORT:
        raise Invalid(f"TBLPROPERTIES type='{text}': expected 'cow' or 'mor'")
    return found


def _fields_with_kinds(options: Mapping[str, str]) -> tuple[str, ...]:
    """The partition columns as the options spell them."""
    return next(split_fields(options[name]) for name in fact_names(Fact.PARTITION_BY) if name in options)


def _columns(fact: FactValue | None) -> tuple[str, ...] | None:
    return fact if isinstance(fact, tuple) else None


def _names_of_arguments() -> set[str]:
    return {name for fact in _ARGUMENTS for name in fact_names(fact)}


def _shown(value: object) -> str:
    return f"'{','.join(value)}'" if isinstance(value, tuple) else f"'{value}'"


def has_meta_fields(table: HudiTable) -> bool:
    """Whether rows are stored with their meta columns."""
    return table.properties.get("hoodie.populate.meta.fields", "true").lower() != "false"
