"""The settings of a table's bucket index, from the table's properties and a write's options.

Spec: format/indexes.md sections 4 and 5.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from pyhudi.errors import Invalid
from pyhudi.format.keys.bucket_counts import BucketCounts, parse_rules
from pyhudi.format.keys.hashing_metadata import INITIAL_INSTANT
from pyhudi.options.names import canonical_name
from pyhudi.options.table_facts import split_fields
from pyhudi.options.values import OptionValues
from pyhudi.predicate.patterns import checked_java_regex
from pyhudi.table.facts.config import TableConfig, TableType

BucketEngine: TypeAlias = Literal["SIMPLE", "CONSISTENT_HASHING"]

INDEX_TYPE = "hoodie.index.type"
ENGINE = "hoodie.index.bucket.engine"
BUCKET_COUNT = "hoodie.bucket.index.num.buckets"
HASH_FIELDS = "hoodie.bucket.index.hash.field"
COUNT_RULES = "hoodie.bucket.index.partition.expressions"
BUCKET_OPTIONS = (INDEX_TYPE, ENGINE, BUCKET_COUNT, HASH_FIELDS, COUNT_RULES)

BUCKET_COUNT_DEFAULT = 256
BUCKET_COUNT_MAX = 99_999_999
"""A bucket's number takes eight digits of the file id."""

RING_COUNT_MAX = 46_341
"""With more buckets on a ring of 31 bits, equal shares that are rounded up could use up the ring before the last one.
"""


@dataclass(frozen=True, slots=True)
class Rescaling:
    """A write that gives partitions other counts. `counts`: the rules from then on. `partitions`: those it rewrites."""

    counts: BucketCounts
    partitions: frozenset[str]


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """How the partitions of a table are cut into buckets.

    `bucket_count`: buckets in each partition; on a ring, the count that a partition starts with; None if not stated.
    `hash_fields`: the key columns that are hashed, in the order of the record key. `is_stored`: whether the table's
    properties state both; `has_stored_fields`: whether they state the hash fields. `count_rules`: which partitions have
    other counts, as the options state it; the rules that the table keeps in a file of their own count before these.
    `rescaling`: of a write that changes those.
    """

    engine: BucketEngine
    bucket_count: int | None
    hash_fields: tuple[str, ...]
    is_stored: bool = False
    has_stored_fields: bool = False
    count_rules: tuple[tuple[str, int], ...] = ()
    rescaling: Rescaling | None = None

    @property
    def stated_counts(self) -> BucketCounts | None:
        """The rules that the options state; None where they state none."""
        if not self.count_rules:
            return None
        return BucketCounts(self.count_rules, self.bucket_count or BUCKET_COUNT_DEFAULT, instant="")


def bucket_facts(options: Mapping[str, str], *, record_key: tuple[str, ...], table_type: TableType) -> BucketFacts:
    """The bucket index that options state. Raises: Invalid for impossible values."""
    values = OptionValues(options)
    engine: BucketEngine = values.choice(ENGINE, "SIMPLE", get_args(BucketEngine))
    if engine == "CONSISTENT_HASHING" and table_type != "MERGE_ON_READ":
        raise Invalid(
            f"option '{ENGINE}'='{engine}': expected a table of type MERGE_ON_READ, found {table_type}; take the "
            "engine SIMPLE, or another type of table"
        )

    count = values.count(BUCKET_COUNT, 0) or None
    most = RING_COUNT_MAX if engine == "CONSISTENT_HASHING" else BUCKET_COUNT_MAX
    if count is not None and count > most:
        raise Invalid(f"option '{BUCKET_COUNT}'='{count}': expected at most {most:,} buckets of a partition")
    return BucketFacts(
        engine, count, _hash_fields(options, record_key), count_rules=read_rules(options.get(COUNT_RULES, ""), engine)
    )


def read_rules(text: str, engine: BucketEngine) -> tuple[tuple[str, int], ...]:
    """The rules by which partitions have counts of their own. Raises: Invalid for a text that states none."""
    if not text.strip():
        return ()
    if engine != "SIMPLE":
        raise Invalid(
            f"option '{COUNT_RULES}'='{text}': expected the engine SIMPLE, found {engine}, by which each partition's "
            "ring is resized on its own: see hoodie.bucket.index.max.num.buckets"
        )
    try:
        rules = parse_rules(text)
    except Invalid as error:
        raise Invalid(f"option '{COUNT_RULES}'={error}") from None
    for pattern, count in rules:
        checked_java_regex(pattern, option=COUNT_RULES)
        if count > BUCKET_COUNT_MAX:
            raise Invalid(f"option '{COUNT_RULES}'='{text}': expected at most {BUCKET_COUNT_MAX:,} buckets")
    return rules


def new_bucket_counts(
    given: Mapping[str, str], *, record_key: tuple[str, ...], table_type: TableType
) -> BucketCounts | None:
    """The rules that a new table keeps; None where the options state none. Raises: as `bucket_facts`."""
    if given.get(INDEX_TYPE, "").strip().upper() != "BUCKET":
        return None
    stated = bucket_facts(given, record_key=record_key, table_type=table_type).stated_counts
    return None if stated is None else replace(stated, instant=INITIAL_INSTANT)


def facts_of_table(config: TableConfig, options: Mapping[str, str]) -> BucketFacts | None:
    """The bucket index that a write shall use. None if the write uses another index.

    `options`: the write's options, with the table's properties as defaults. Raises: Invalid for impossible values, and
    for a value that contradicts the table: its rows are already placed by the stored one.
    """
    properties = {canonical_name(name): text for name, text in config.properties.items()}
    stored_type, asked_type = (texts.get(INDEX_TYPE, "").strip().upper() for texts in (properties, options))
    if stored_type and stored_type != asked_type and "BUCKET" in (stored_type, asked_type):
        raise Invalid(_contradiction(INDEX_TYPE, options, properties, config))

    if asked_type != "BUCKET":
        return None

    facts = bucket_facts(options, record_key=config.record_key, table_type=config.table_type)
    stored = bucket_facts(properties, record_key=config.record_key, table_type=config.table_type)
    compared = (
        (ENGINE, facts.engine, stored.engine),
        (BUCKET_COUNT, facts.bucket_count, stored.bucket_count),
        (HASH_FIELDS, facts.hash_fields, stored.hash_fields),
    )
    # Only what the table stores can be contradicted.
    for name, asked, known in compared:
        if properties.get(name, "").strip() and asked != known:
            raise Invalid(_contradiction(name, options, properties, config))

    has_count, has_fields = (bool(properties.get(name, "").strip()) for name in (BUCKET_COUNT, HASH_FIELDS))
    return replace(facts, is_stored=has_count and has_fields, has_stored_fields=has_fields)


def new_bucket_properties(
    given: Mapping[str, str], *, record_key: tuple[str, ...], table_type: TableType
) -> dict[str, str]:
    """The properties of the bucket index that a new table stores, defaults included. Empty for another index.

    With them, every later write places a row in the same bucket. Where partitions have counts of their own, the rules
    hold the count of all others, too. Raises: as `bucket_facts`.
    """
    if given.get(INDEX_TYPE, "").strip().upper() != "BUCKET":
        return {}
    facts = bucket_facts(given, record_key=record_key, table_type=table_type)
    return {
        INDEX_TYPE: "BUCKET",
        ENGINE: facts.engine,
        **({} if facts.count_rules else {BUCKET_COUNT: str(facts.bucket_count or BUCKET_COUNT_DEFAULT)}),
        HASH_FIELDS: ",".join(facts.hash_fields),
    }


def _hash_fields(options: Mapping[str, str], record_key: tuple[str, ...]) -> tuple[str, ...]:
    """The hash fields in the order of the record key, since the record key holds their values in that order."""
    if not record_key:
        raise Invalid(
            f"option '{INDEX_TYPE}'='BUCKET': expected a table with key columns, found one whose keys the writer makes "
            "up, so that no row is met again; take another index"
        )

    asked = split_fields(options.get(HASH_FIELDS, ""))
    unknown = next((name for name in asked if name not in record_key), None)
    if unknown is not None:
        raise Invalid(
            f"option '{HASH_FIELDS}'='{options[HASH_FIELDS]}': expected columns of the record key "
            f"({', '.join(record_key)}), found '{unknown}'"
        )
    return tuple(name for name in record_key if name in asked or not asked)


def _contradiction(name: str, options: Mapping[str, str], stored: Mapping[str, str], config: TableConfig) -> str:
    return (
        f"option '{name}'='{options.get(name, '')}': table '{config.name}' stores '{stored[name]}', by which its rows "
        "are placed; leave the option out, or make another table"
    )
