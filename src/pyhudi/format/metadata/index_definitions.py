"""The file that describes a table's indexes, `.hoodie/.index_defs/index.json`, since table version 8.

Definitions keep the order of the file, as Apache Hudi 1.2.0 does when it adds one.
Spec: format/metadata-table.md section 2. Seen: 1.0.2 writes no `version`; 1.2.0 does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyhudi.errors import CorruptFile
from pyhudi.format.metadata.groups import COLUMN_STATS, RECORD_INDEX, SECONDARY_INDEX_PREFIX
from pyhudi.format.pretty_json import pretty_json

_MEMBERS: Final = ("indexName", "indexType", "indexFunction", "sourceFields", "indexOptions", "version")
_IS_PARTITIONED: Final = "isPartitioned"


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index. `name`: its partition of the metadata table. `version`: `V1`, `V2`, or None if the file has none."""

    name: str
    type: str
    function: str = ""
    source_fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None

    @property
    def is_partitioned(self) -> bool:
        """For a record index: whether each data partition has file groups of its own."""
        return self.options.get(_IS_PARTITIONED) == "true"

    @property
    def is_second_version(self) -> bool:
        """Whether this is version V2, where bounds state their type, and secondary keys are hashed by their values."""
        return self.version == "V2"


def column_stats_definition(columns: tuple[str, ...], version: str | None) -> IndexDefinition:
    """The definition of column statistics for these columns, in this order."""
    return IndexDefinition(
        name=COLUMN_STATS, type=COLUMN_STATS, function=COLUMN_STATS, source_fields=columns, options={}, version=version
    )


def record_index_definition(*, is_partitioned: bool) -> IndexDefinition:
    """The definition of the record index, as 1.1 and later write it."""
    return IndexDefinition(
        name=RECORD_INDEX,
        type=RECORD_INDEX,
        function="",
        source_fields=(),
        options={_IS_PARTITIONED: "true" if is_partitioned else "false"},
        version="V1",
    )


def secondary_index_definition(name: str, column: str, version: str | None) -> IndexDefinition:
    """The definition of a secondary index. `name`: without the prefix."""
    return IndexDefinition(
        name=f"{SECONDARY_INDEX_PREFIX}{name}",
        type="secondary_index",
        function="identity",
        source_fields=(column,),
        options={},
        version=version,
    )


def expression_index_definition(
    name: str, flavour: str, function: str, column: str, options: Mapping[str, str], version: str | None
) -> IndexDefinition:
    """The definition of an index on a function of a column.

    `name`: with the prefix. `flavour`: `column_stats` or `bloom_filters`.

    Seen: 1.0.2 puts the function among the options, too.
    """
    return IndexDefinition(
        name=name,
        type=flavour,
        function=function,
        source_fields=(column,),
        options={"expr": function, **options},
        version=version,
    )


def encode_index_definitions(definitions: Mapping[str, IndexDefinition]) -> bytes:
    """The file, in the order of the mapping, as Apache Hudi prints it."""
    made: dict[str, object] = {}
    for name, one in definitions.items():
        assert name == one.name
        values = (one.name, one.type, one.function, list(one.source_fields), dict(one.options), one.version)
        made[name] = {member: value for member, value in zip(_MEMBERS, values, strict=True) if value is not None}
    return pretty_json({"indexDefinitions": made}).encode()


def decode_index_definitions(content: bytes, *, path: str) -> dict[str, IndexDefinition]:
    """The definitions by partition of the metadata table, in the order of the file. An empty file has none.

    JSON members that are not known are passed over, as in Apache Hudi. Raises: CorruptFile for any other content.
    """
    if not content.strip():
        return {}
    try:
        parsed = json.loads(content)
        return {name: _definition(one) for name, one in (parsed["indexDefinitions"] or {}).items() if one is not None}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        found = f"{type(error).__name__}: {error}"[:200]
        raise CorruptFile(path, 0, expected="index definitions as JSON", found=found) from error


def _definition(one: Mapping[str, object]) -> IndexDefinition:
    fields, options, version = one.get("sourceFields") or [], one.get("indexOptions") or {}, one.get("version")
    if not isinstance(fields, list) or not isinstance(options, dict) or not isinstance(version, str | None):
        raise ValueError(f"index {one.get('indexName')!r:.60}")
    texts = [str(one[name]) for name in ("indexName", "indexType")]
    return IndexDefinition(
        name=texts[0],
        type=texts[1],
        function=str(one.get("indexFunction") or ""),
        source_fields=tuple(str(name) for name in fields),
        options={str(key): str(value) for key, value in options.items() if value is not None},
        version=version,
    )
