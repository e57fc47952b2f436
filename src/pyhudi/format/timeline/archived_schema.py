"""The schema of an archived entry of layout 1, made from the schemas of the timeline's own files.

Spec: format/timeline.md section 4.1, "HoodieArchivedMetaEntry". Seen: 0.15.0 writes these fields in this order. The
records inside are those of newer releases; readers resolve them by name.
"""

import json
from functools import cache
from typing import cast

from pyhudi.format.avro.schema_text import (
    NAMESPACE,
    STRING,
    Json,
    array,
    mapping,
    optional,
    record,
    schema_text,
    version,
)
from pyhudi.format.timeline import action_schemas

_COUNTS = ("totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted")
_COMPACTION = record(
    "HoodieCompactionMetadata",
    optional(
        "partitionToCompactionWriteStats",
        mapping(
            array(
                record(
                    "HoodieCompactionWriteStat",
                    optional("partitionPath", STRING),
                    *(
                        optional(n, "long")
                        for n in ("totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted")
                    ),
                    optional("hoodieWriteStat", "HoodieWriteStat"),
                )
            )
        ),
    ),
)
"""The metadata of a compaction, as releases older than table version 6 archived it. The field stays empty."""


@cache
def archived_schema() -> str:
    """The schema text of `HoodieArchivedMetaEntry`. A type is defined at its first use, and named at later uses."""
    seen: set[str] = set()

    def member(name: str, text: str) -> Json:
        return optional(name, _once(json.loads(text), seen))

    return schema_text(
        record(
            "HoodieArchivedMetaEntry",
            member("hoodieCommitMetadata", action_schemas.COMMIT),
            member("hoodieCleanMetadata", action_schemas.CLEAN),
            member("hoodieCompactionMetadata", json.dumps(_COMPACTION)),
            member("hoodieRollbackMetadata", action_schemas.ROLLBACK),
            member("hoodieSavePointMetadata", action_schemas.SAVEPOINT),
            optional("commitTime", STRING),
            optional("actionType", STRING),
            version(),
            member("hoodieCompactionPlan", action_schemas.COMPACTION_PLAN),
            member("hoodieCleanerPlan", action_schemas.CLEANER_PLAN),
            optional("actionState", STRING),
            member("hoodieReplaceCommitMetadata", action_schemas.REPLACE_COMMIT),
            member("hoodieRequestedReplaceMetadata", action_schemas.REQUESTED_REPLACE),
            optional("HoodieInflightReplaceMetadata", "HoodieCommitMetadata"),
            member("hoodieIndexCommitMetadata", action_schemas.INDEX_COMMIT),
            optional("stateTransitionTime", STRING),
            namespace=NAMESPACE,
        )
    )


def _once(schema: Json, seen: set[str]) -> Json:
    if isinstance(schema, list):
        return [_once(one, seen) for one in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("name") if schema.get("type") in ("record", "enum", "fixed") else None
    if isinstance(name, str):
        if name in seen:
            return name
        seen.add(name)
    kept = {key: value for key, value in schema.items() if key != "namespace"}
    return cast(Json, {key: _once(value, seen) if key in _NESTED else value for key, value in kept.items()})


_NESTED = ("type", "fields", "items", "values")
