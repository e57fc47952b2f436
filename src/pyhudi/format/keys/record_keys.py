"""Record keys and partition paths over Arrow columns: the one module that spells them.

Memory: the key and path columns beside the input. If Arrow has no kernel that spells a type as Java does, a loop runs
over the distinct values.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.java_numbers import java_double, java_float
from pyhudi.format.keys.java_timestamps import java_timestamp_texts, sql_timestamp_texts
from pyhudi.format.keys.own_generators import KeyGenerator, run_generator
from pyhudi.format.keys.timestamp_paths import TimestampSpec
from pyhudi.format.keys.timestamp_paths import partition_texts as time_partition_texts
from pyhudi.format.names import PARTITIONS_KEY
from pyhudi.format.struct_fields import column_around, column_at
from pyhudi.format.time_units import stored_numbers

NULL_COMPONENT = "__null__"
EMPTY_COMPONENT = "__empty__"

_NAME_BEFORE = (
    "change the values, or create the table with "
    "properties={'hoodie.datasource.write.hive_style_partitioning': 'true'}, which puts column= before them"
)
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

ESCAPED_CHARACTERS = "".join(map(chr, range(0x20))) + "\x7f\"#%'*/:=?\\{[]^"
"""The characters that URL encoding of partition paths escapes. Spec: format/layout.md section 4.4."""

_TO_ESCAPE = re.compile("[" + re.escape(ESCAPED_CHARACTERS) + "]")


@dataclass(frozen=True, slots=True)
class KeySpec:
    """How a table spells keys and paths.

    `record_key` empty: the writer makes keys up. `is_composite`: the record key is `f1:v1,f2:v2`, not the bare value of
    one column. `time_based`: the partition columns whose paths `times` makes; `times` is None in a spec for reading
    only. `has_slashed_dates`: a `-` in the one partition column's text is a `/` in the path. `has_logical_timestamps`:
    timestamps in keys and paths are text, not numbers. `own_generator`: the name of the table's key generator, where
    that is none of Apache Hudi's; `generator`: what is registered under this name, None if nothing is. Such paths tell
    no values of columns. `paths_tell_values`: whether those of the table's version do. `path_column`: the input's
    column of paths that rows stay in; null in rows whose paths are made. `sql_times`: partition columns of timestamps
    whose paths are a date and a time, as Apache Hudi's SQL makes them. `is_left_out`: files do not hold the partition
    columns, so that values are refused which a path does not tell.
    """

    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    is_composite: bool
    is_hive_style: bool
    is_url_encoded: bool
    time_based: tuple[str, ...] = ()
    times: TimestampSpec | None = None
    has_slashed_dates: bool = False
    has_logical_timestamps: bool = False
    own_generator: str = ""
    generator: KeyGenerator | None = None
    paths_tell_values: bool = True
    path_column: str = ""
    sql_times: tuple[str, ...] = ()
    is_left_out: bool = False

    @property
    def makes_keys(self) -> bool:
        """Whether the writer makes record keys up, because no column holds one."""
        return not self.record_key and not self.own_generator

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that record keys are made of, each once; of a field within a record, the column of the record."""
        return tuple(dict.fromkeys(map(column_around, self.record_key)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that keys and paths are made of, each once."""
        return tuple(dict.fromkeys((*self.record_key, *self.partition_by)))


def record_keys(rows: pa.Table, spec: KeySpec, *, task: int = 0, first: int = 0) -> pa.ChunkedArray:
    """The record key of each row, as strings.

    Keys that the writer makes up are `<task>_<row>`, with rows counted from `first`. The caller puts the write's
    instant before them.
    Spec: format/layout.md sections 5.1 and 5.2. Raises: Invalid for a null or empty key, naming the first row.
    """
    if spec.makes_keys:
        numbers = pa.array(np.arange(first, first + len(rows))).cast(pa.string())
        return _chunked(pc.binary_join_element_wise(str(task), numbers, "_"))

    if spec.own_generator:
        keys, _ = _generated(rows, spec)
        _refuse_rows(_all_missing([keys]), rows, spec)
        return keys

    texts = [key_text(rows, name, spec) for name in spec.record_key]
    _refuse_rows(_all_missing(texts), rows, spec)
    if not spec.is_composite:
        return texts[0]

    parts = [
        pc.binary_join_element_wise(f"{name}:", _component(text), "")
        for name, text in zip(spec.record_key, texts, strict=True)
    ]
    return _chunked(parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ","))


def missing_keys(rows: pa.Table, spec: KeySpec) -> pa.ChunkedArray:
    """Whether each row's record key is null or empty as a whole."""
    if spec.makes_keys:
        return _chunked(pa.repeat(False, len(rows)))
    if spec.own_generator:
        return _all_missing([_generated(rows, spec)[0]])
    return _all_missing([key_text(rows, name, spec) for name in spec.record_key])


def _generated(rows: pa.Table, spec: KeySpec) -> tuple[pa.ChunkedArray, pa.ChunkedArray | None]:
    """The keys and paths of a generator of the user's. Raises: Unsupported where none is registered."""
    if spec.generator is None:
        raise Unsupported(
            f"key generator '{spec.own_generator}': expected one that is registered in this process, found none; "
            f"register it with pyhudi.register_key_generator('{spec.own_generator}', ...)"
        )
    return run_generator(spec.generator, rows, spec.columns, has_paths=bool(spec.partition_by))


def key_text(rows: pa.Table, name: str, spec: KeySpec) -> pa.ChunkedArray:
    """The text of a column's values as part of a key or path."""
    column = _column(rows, name)
    if spec.has_logical_timestamps and pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return java_timestamp_texts(column, name)
    return value_text(column, name)


def _all_missing(texts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    missing = [_chunked(pc.equal(pc.fill_null(text, ""), "")) for text in texts]
    together = missing[0]
    for one in missing[1:]:
        together = pc.and_(together, one)
    return together


def partition_paths(rows: pa.Table, spec: KeySpec) -> pa.ChunkedArray:
    """The partition path of each row, as a dictionary-encoded column of strings.

    Spec: format/layout.md section 4.4. Raises: Invalid for a value that would leave the table's folder.
    """
    if not spec.partition_by:
        return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), len(rows)), [""])])

    if spec.path_column:
        return _stored_paths(rows, spec)

    if spec.own_generator:
        _, own = _generated(rows, spec)
        assert own is not None  # the table has partition columns
        return _checked_paths(own)

    levels = []
    for name in spec.partition_by:
        text = partition_text(rows, name, spec)
        levels.append(_map_distinct(text, lambda value, name=name: partition_level(value, name, spec)))  # type: ignore[misc]

    paths = levels[0] if len(levels) == 1 else pc.binary_join_element_wise(*levels, "/")
    return _checked_paths(_chunked(paths))


def _stored_paths(rows: pa.Table, spec: KeySpec) -> pa.ChunkedArray:
    stored = one_array(rows.column(spec.path_column))
    if stored.null_count:
        missing = pc.is_null(stored)
        made = one_array(partition_paths(rows.filter(missing), replace(spec, path_column=""))).cast(pa.string())
        stored = pc.replace_with_mask(stored, missing, made)
    return _checked_paths(pa.chunked_array([stored]))


def _checked_paths(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    encoded = paths.combine_chunks().dictionary_encode()
    encoded = encoded if isinstance(encoded, pa.DictionaryArray) else encoded.unify_dictionaries().chunk(0)

    for path in encoded.dictionary.to_pylist():
        check_partition_path(path)
    return pa.chunked_array([encoded])


def partition_text(rows: pa.Table, name: str, spec: KeySpec) -> pa.ChunkedArray:
    """The text that a column gives to the partition path, before it is encoded."""
    if name in spec.sql_times:
        return sql_timestamp_texts(_column(rows, name), name)
    if name not in spec.time_based:
        return key_text(rows, name, spec)
    assert spec.times is not None  # a spec for writing has it
    return time_partition_texts(_column(rows, name), name, spec.times)


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return _chunked(column_at(rows, name))


def partition_level(value: str | None, name: str, spec: KeySpec) -> str:
    """One level of a partition path from the text of its value. Raises: Invalid for a text that no file would hold."""
    is_untold = value is not None and (value in UNTOLD_TEXTS or any(part in value for part in untold_parts(spec)))
    if spec.is_left_out and is_untold:
        raise Invalid(untold_message(name, value or ""))
    text = value or DEFAULT_PARTITION
    if value and (spec.is_url_encoded or name in spec.sql_times):
        text = _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", text)
    if spec.has_slashed_dates:  # a path with `//` is refused, because a `/` of the value could not be told from a `-`
        text = text.replace("/", "//").replace("-", "/")
    return f"{name}={text}" if spec.is_hive_style else text


UNTOLD_TEXTS = ("", DEFAULT_PARTITION)
"""Texts whose partition is that of null."""


def untold_parts(spec: KeySpec) -> tuple[str, ...]:
    """What a text must not have within it, or the path would be cut into columns elsewhere. See `partition_values`."""
    if len(spec.partition_by) == 1 or spec.is_url_encoded:
        return ()
    return tuple(f"/{name}=" for name in spec.partition_by[1:]) if spec.is_hive_style else ("/",)


def untold_message(name: str, value: str) -> str:
    """The text of the error for a value of a column that files do not hold, which its path does not tell."""
    ways_out = ", use null" if not value else ", or make a table that keeps the column in its files"
    return (
        f"partition column '{name}', value {value!r}: expected a value that the partition path tells, for "
        f"hoodie.datasource.write.drop.partition.columns='true' leaves the column out of the files; change it{ways_out}"
    )


PARTITION_LEVELS_MAX, PARTITION_BYTES_MAX, PARTITION_PART_BYTES_MAX = 100, 900, 255
"""The most folders and UTF-8 bytes of a partition path, and the most bytes of one folder's name. File systems take
names of 255 bytes; object stores take 1,024 bytes for a whole path, of which a file name needs a hundred.
"""


def check_partition_path(path: str) -> None:
    """Refuse a partition path that is no folder of its own below the table, or that is too long or too deep.

    A single row makes a path, and must not make a table that nobody can list or clean. Raises: Invalid.
    """
    parts = path.split("/")
    sizes = [len(part.encode()) for part in parts]
    if (
        len(parts) > PARTITION_LEVELS_MAX
        or sum(sizes) + len(parts) > PARTITION_BYTES_MAX
        or max(sizes) > PARTITION_PART_BYTES_MAX
    ):
        raise Invalid(
            f"partition path '{path[:60]}...': expected at most {PARTITION_LEVELS_MAX} folders, {PARTITION_BYTES_MAX} "
            f"bytes, and {PARTITION_PART_BYTES_MAX} bytes a folder, found {len(parts):,} folders, "
            f"{sum(sizes) + len(parts) - 1:,} bytes, and a folder of {max(sizes):,} bytes; change the values"
        )

    if "\0" in path:
        raise Invalid(
            f"partition path {path!r}: expected a name that a folder can have, found one with NUL; change the values, "
            "or create the table with properties={'hoodie.datasource.write.partitionpath.urlencode': 'true'}"
        )
    for part in parts:
        if part in (".", ".."):
            raise Invalid(
                f"partition path '{path}': expected folder names below the table, found '{part}', which no folder can "
                f"have as its name; {_NAME_BEFORE}"
            )
    if path == PARTITIONS_KEY:
        raise Invalid(
            f"partition path '{path}': expected another name: the metadata table has its list of partitions under "
            f"this one; {_NAME_BEFORE}"
        )
    if path and any(not part or part.startswith(".hoodie") for part in parts):
        raise Invalid(
            f"partition path '{path}': expected folder names below the table, found an empty or '.hoodie' "
            "part; change the values or create the table with "
            "properties={'hoodie.datasource.write.partitionpath.urlencode': 'true'}"
        )


def partition_values(path: str, spec: KeySpec) -> dict[str, str | None]:
    """The texts of the partition columns in a path; empty if the path does not tell them apart, if a key generator of
    the user's makes paths, or if paths of the table's version do not tell values.

    Example: `city=oslo/day=2` gives city `oslo` and day `2`. A value may have a `/`: `city=a/b/day=2` gives city `a/b`.
    Without the names in front, a path of more folders than columns tells nothing. The text of a time-based column is
    not the column's value: many values share the text.
    """
    if not spec.partition_by or spec.own_generator or not spec.paths_tell_values:
        return {}
    values: dict[str, str | None] = {}
    for name, part in zip(spec.partition_by, _parts(path, spec), strict=False):
        text = part.removeprefix(f"{name}=") if spec.is_hive_style else part
        if spec.has_slashed_dates:
            text = text.replace("/", "-")
        if spec.is_url_encoded or name in spec.sql_times:
            text = re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)
        values[name] = None if text == DEFAULT_PARTITION else text

    return values


def _parts(path: str, spec: KeySpec) -> list[str]:
    """The part of a path that each partition column has made; none where there are several ways to cut it."""
    names, folders = spec.partition_by, path.split("/")
    if len(names) == 1:
        return [path]
    if len(folders) == len(names):
        return folders
    if not spec.is_hive_style or not folders[0].startswith(f"{names[0]}="):
        return []
    begins = [[at for at, folder in enumerate(folders) if at and folder.startswith(f"{name}=")] for name in names[1:]]
    places = [0, *(one[0] for one in begins if len(one) == 1), len(folders)]
    if len(places) != len(names) + 1 or places != sorted(set(places)):
        return []
    return ["/".join(folders[start:end]) for start, end in pairwise(places)]


def value_text(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The text of each value as Apache Hudi's key generators spell it.

    A timestamp is a number of its column's units. Floats and doubles are spelled as Java prints them. Raises: Invalid.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type

    if pa.types.is_string(kind):
        return column
    if (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_large_string(kind)
    ):
        return column.cast(pa.string())

    if pa.types.is_timestamp(kind):
        return stored_numbers(column).cast(pa.string())
    if pa.types.is_decimal(kind):
        # Python and Java print decimals by the same rule; Arrow does not follow this rule below 1E-6.
        return (
            column.cast(pa.string())
            if kind.scale <= 6
            else _map_distinct(column, lambda v: None if v is None else str(v))
        )

    if pa.types.is_floating(kind):
        spell = java_float if pa.types.is_float32(kind) else java_double
        return _map_distinct(column, lambda v: None if v is None else spell(v))

    raise Invalid(
        f"column '{name}' of type {kind}: expected text, a number, a boolean, a date or a timestamp, for it is part of "
        "the record key or the partition path"
    )


def _component(text: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(
        pc.equal(pc.fill_null(text, NULL_COMPONENT), ""), EMPTY_COMPONENT, pc.fill_null(text, NULL_COMPONENT)
    )


def _map_distinct(column: pa.ChunkedArray, spell: Callable[[Any], str | None]) -> pa.ChunkedArray:
    """The text of each value, where `spell` is called once for each distinct value, null included."""
    encoded = one_array(column).dictionary_encode(null_encoding="encode")
    spelled = pa.array([spell(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return _chunked(spelled.take(encoded.indices))


def _chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column], type=column.type)


def _refuse_rows(bad: pa.ChunkedArray, rows: pa.Table, spec: KeySpec) -> None:
    """Raise for the first row whose key is null or empty."""
    count = pc.sum(bad).as_py() or 0
    if count == 0:
        return
    first = pc.index(_chunked(bad), True).as_py()
    shown = {name: rows.column(name)[first].as_py() for name in spec.record_key}
    raise Invalid(null_key_message(spec.record_key, count, f"row {first:,} has {shown}"))


def null_key_message(record_key: Sequence[str], count: int, example: str) -> str:
    """The text of the error for null or empty record keys."""
    return (
        f"record key ({', '.join(record_key)}): expected a value in each row, found {count:,} null or empty; "
        f"{example}; fill the column or drop these rows"
    )
