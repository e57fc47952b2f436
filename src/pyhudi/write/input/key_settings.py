"""How a write spells partition paths that are made of times: the key generators' options, compared with the table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self, cast, get_args

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys.date_patterns import DatePattern, input_pattern, output_pattern
from pyhudi.format.keys.record_keys import KeySpec, value_text
from pyhudi.format.keys.timestamp_paths import TimestampSpec, TimestampType, TimeUnit, refuse_type, zone_of
from pyhudi.format.schema.conversion import is_field_name
from pyhudi.format.struct_fields import is_path, with_fields
from pyhudi.options.names import canonical_name
from pyhudi.options.table_facts import split_fields
from pyhudi.options.values import OptionValues
from pyhudi.table.facts.config import KeyKind, TableConfig, table_facts
from pyhudi.table.facts.key_properties import (
    BOTH_ZONES,
    DELIMITER,
    INPUT,
    INPUT_ZONE,
    OUTPUT,
    OUTPUT_ZONE,
    PREFIX,
    TYPE,
    UNIT,
)
from pyhudi.table.view.snapshot import key_spec

LOGICAL_TIMESTAMP = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
_BARE = "hoodie.write.complex.keygen.new.encoding"
PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"

_UNIT_OF: dict[TimestampType, TimeUnit] = {
    TimestampType.UNIX_TIMESTAMP: "SECONDS",
    TimestampType.EPOCHMILLISECONDS: "MILLISECONDS",
    TimestampType.EPOCHMICROSECONDS: "MICROSECONDS",
}


@dataclass(frozen=True, slots=True)
class KeySettings:
    """`times`: how time-based partition columns become paths; None if no option says.

    `kinds`: partition column -> SIMPLE or TIMESTAMP, as the write's own options state it.
    `has_logical_timestamps`: timestamps in keys are text, not numbers. `stated`: the options for all this, as texts.
    `names_column`: as of `stored_key_spec`; None if no option says.
    """

    times: TimestampSpec | None = None
    kinds: tuple[tuple[str, str], ...] = ()
    has_logical_timestamps: bool = False
    stated: tuple[tuple[str, str], ...] = ()
    names_column: bool | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """What the options say of keys. Raises: Invalid, Unsupported for values that cannot be, naming the option."""
        is_logical = OptionValues(options).flag(LOGICAL_TIMESTAMP, False)
        fields = [field.partition(":") for field in split_fields(options.get(PARTITION_FIELDS, ""))]
        return cls(
            times=_times(options, is_logical)
            if all(options.get(name, "").strip() for name in (TYPE, OUTPUT))
            else None,
            kinds=tuple((name.strip(), kind.strip().upper()) for name, colon, kind in fields if colon),
            has_logical_timestamps=is_logical,
            stated=tuple((k, v) for k, v in options.items() if v.strip() and _is_of_keys(k)),
            names_column=not OptionValues(options).flag(_BARE, True) if options.get(_BARE, "").strip() else None,
        )

    def spec(self, of_table: KeySpec, config: TableConfig) -> KeySpec:
        """How this write spells keys and paths.

        Raises: Invalid for an option that contradicts what the table stores, and where no option tells how the table's
        time-based paths are made.
        """
        properties = {canonical_name(name): text for name, text in config.properties.items()}
        for name, text in self.stated:
            stored = properties.get(name, text)
            if stored.strip() != text.strip():
                raise Invalid(
                    f"option '{name}'='{text}': table '{config.name}' stores '{stored}', by which its rows are placed; "
                    "leave the option out, or make another table"
                )

        time_based = self._time_based(config)
        if time_based and self.times is None:
            stated = ", ".join(name for name, _ in self.stated)
            raise Invalid(
                f"table '{config.name}': its partition column '{time_based[0]}' is time-based: expected {TYPE} and "
                f"{OUTPUT} among the table's properties or the options, found {stated or 'none'}"
            )

        times = self.times if time_based else None
        return replace(
            of_table, time_based=time_based, times=times, has_logical_timestamps=self.has_logical_timestamps,
            is_left_out=bool(config.left_out),
        )  # fmt: skip

    def _time_based(self, config: TableConfig) -> tuple[str, ...]:
        if config.key_kind is not KeyKind.CUSTOM or all(":" in field for field in config.partition_fields):
            return config.time_based
        kinds = dict(self.kinds)
        for name in config.partition_by:
            if kinds.get(name) not in ("SIMPLE", "TIMESTAMP"):
                raise Invalid(
                    f"table '{config.name}': its custom key generator does not store the kind of '{name}': expected "
                    f"{PARTITION_FIELDS}='{name}:SIMPLE' or '{name}:TIMESTAMP' among the options"
                )
        return tuple(name for name in config.partition_by if kinds[name] == "TIMESTAMP")


def refuse_unplaceable(spec: KeySpec, schema: pa.Schema, *, is_custom: bool) -> None:
    """Refuse columns that the key generator cannot read, and paths that Apache Hudi could not read afterwards.

    Seen: readers of 0.15 to 1.2 fail on custom partitions if they cannot count the path's levels, or cannot cast a
    level to the column's type. Raises: Invalid, Unsupported.
    """
    for name in spec.time_based:
        assert spec.times is not None
        if name not in schema.names:
            continue  # said elsewhere

        kind = schema.field(name).type
        refuse_type(spec.times, kind, name)

        pattern = spec.times.output
        if is_custom and len(spec.partition_by) > 1 and "/" in _literals(pattern) and not spec.is_url_encoded:
            raise Unsupported(
                f"option '{OUTPUT}'='{pattern.pattern}': a '/' beside other partition columns: Apache Hudi cannot tell "
                "the levels apart; take another character, or hoodie.datasource.write.partitionpath.urlencode=true"
            )

        if is_custom and pa.types.is_integer(kind) and not _is_all_digits(pattern):
            raise Unsupported(
                f"option '{OUTPUT}'='{pattern.pattern}': column '{name}' of type {kind}: Apache Hudi cannot read such "
                "a partition back as a number; take a pattern of digits only, such as 'yyyyMMdd'"
            )


def _times(options: Mapping[str, str], is_logical: bool) -> TimestampSpec:
    values = OptionValues(options)
    kind = TimestampType(values.choice(TYPE, "", tuple(TimestampType)))
    unit = _UNIT_OF.get(kind) or cast(TimeUnit, values.choice(UNIT, "SECONDS", get_args(TimeUnit)))
    inputs = _input_patterns(options) if kind.is_text else ()

    zones = [
        options.get(BOTH_ZONES if BOTH_ZONES in options else option, "").strip() for option in (INPUT_ZONE, OUTPUT_ZONE)
    ]
    for zone in filter(None, zones):
        zone_of(zone)
    if kind.is_text and not zones[0] and zones[1] and not all(pattern.has_offset for pattern in inputs):
        raise Invalid(
            f"option '{OUTPUT_ZONE}'='{zones[1]}': expected {INPUT_ZONE}, too, found none; times without an offset "
            "would depend on the machine that writes"
        )

    output = output_pattern(options[OUTPUT], option=OUTPUT)
    return TimestampSpec(kind, unit, inputs, output, zones[0] or None, zones[1] or None, is_logical)


def _input_patterns(options: Mapping[str, str]) -> tuple[DatePattern, ...]:
    listed = options.get(INPUT, "")
    delimiter = options.get(DELIMITER, "").strip() or ","
    try:
        texts = [text.strip() for text in re.split(delimiter, listed)]
    except re.error as error:
        raise Invalid(f"option '{DELIMITER}'='{delimiter}': expected a regular expression: {error}") from None
    if not any(texts):
        raise Invalid(f"option '{INPUT}': expected the patterns of the texts, such as 'yyyy-MM-dd', found none")
    return tuple(input_pattern(text, option=INPUT) for text in texts if text)


def _is_of_keys(name: str) -> bool:
    return name.startswith(PREFIX) or name == LOGICAL_TIMESTAMP


def _literals(pattern: DatePattern) -> str:
    return "".join(token.text for token in pattern.tokens if not hasattr(token, "letter"))


def _is_all_digits(pattern: DatePattern) -> bool:
    return not any(one.is_text for one in pattern.letters) and (_literals(pattern) or "0").isdigit()


def refuse_unwritable_keys(properties: Mapping[str, str], schema: pa.Schema | None) -> None:
    """Refuse properties and columns of a new table that give rows no key or partition path. Raises: Invalid,
    Unsupported.
    """
    config = table_facts(properties, path="hoodie.properties")
    spec = KeySettings.from_options(properties).spec(key_spec(config), config)
    if found := next(filter(is_path, config.left_out), None):
        raise Invalid(
            f"hoodie.datasource.write.drop.partition.columns='true' with the partition column '{found}': expected a "
            "column of its own, for a file cannot leave out a field of a struct; leave the option out"
        )
    for name in filter(is_path, (*spec.columns, *config.ordering)):
        if not all(map(is_field_name, name.split("."))):
            raise Invalid(
                f"column '{name}': expected names of letters, digits and _ with a dot between them, the path of a "
                "field of a struct"
            )
    if schema is not None:
        schema = with_fields(schema, spec.columns)
        refuse_unplaceable(spec, schema, is_custom=config.key_kind is KeyKind.CUSTOM)
        for name in () if spec.own_generator else set(spec.columns).difference(spec.time_based):
            value_text(pa.chunked_array([], schema.field(name).type), name)
