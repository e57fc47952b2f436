"""Version 8 to 9: properties take the place of payload classes; there may be several ordering columns.

Spec: format/versions.md section 3, "8→9". Seen: `raw/upgrade_chain_*` (1.2.0).
"""

from pyhudi.merge.payloads import DELETE_FIELD, DELETE_MARKER, LEGACY_PAYLOADS, MERGE_PROPERTY
from pyhudi.merge.rules import MergeMode
from pyhudi.services.upgrade.facts import (
    LEGACY_PAYLOAD,
    MODE,
    ORDERING,
    PAYLOAD,
    PRECOMBINE,
    STRATEGY,
    Properties,
    short,
    without,
)

_KEPT_MODES = ("DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload")


def to_nine(properties: Properties, first_payload: str) -> dict[str, str]:
    """`first_payload`: the payload class that the table had before the first step.

    Seen: an upgrade from 6 in one go states that class as the legacy one, not what version 8 makes of it.
    """
    now = without(properties, PRECOMBINE)
    if properties.get(PRECOMBINE):
        now[ORDERING] = properties[PRECOMBINE]
    if now.get(MODE) != MergeMode.CUSTOM:
        now = without(now, STRATEGY)

    legacy = LEGACY_PAYLOADS.get(short(properties.get(PAYLOAD, "")))
    if legacy is not None:
        named = first_payload if short(first_payload) in LEGACY_PAYLOADS else properties[PAYLOAD]
        now = {**without(now, PAYLOAD), LEGACY_PAYLOAD: named, **legacy.properties}
        if short(named) not in _KEPT_MODES:
            now = without({**now, MODE: LEGACY_PAYLOADS[short(named)].mode.value}, STRATEGY)
        if legacy.ordering:
            now[ORDERING] = legacy.ordering

    column, marker = properties.get(DELETE_FIELD), properties.get(DELETE_MARKER)
    if column and marker:
        now = without(now, DELETE_FIELD, DELETE_MARKER)
        now |= {MERGE_PROPERTY + DELETE_FIELD: column, MERGE_PROPERTY + DELETE_MARKER: marker}
    return now
