"""Version 9 to 8: a payload class and a strategy id beside the merge mode, and one ordering column.

Spec: format/versions.md section 3, "9→8". Seen: `raw/upgrade_chain_*` (1.2.0).
"""

from pyhudi.errors import Unsupported
from pyhudi.merge.payloads import DELETE_FIELD, DELETE_MARKER, LEGACY_PAYLOADS, MERGE_PROPERTY, PARTIAL_UPDATE_MODE
from pyhudi.merge.rules import MergeMode
from pyhudi.services.upgrade.facts import (
    DEFAULT_PAYLOAD,
    IDS,
    LATEST_PAYLOAD,
    LEGACY_PAYLOAD,
    MODE,
    ORDERING,
    PAYLOAD,
    PAYLOADS,
    PRECOMBINE,
    STRATEGY,
    Properties,
    short,
    without,
)

_MODES = {
    DEFAULT_PAYLOAD: MergeMode.EVENT_TIME,
    LATEST_PAYLOAD: MergeMode.COMMIT_TIME,
    "EventTimeAvroPayload": MergeMode.EVENT_TIME,
}
_PLAIN = tuple(_MODES)
_OWN_ORDERING = {"MySqlDebeziumAvroPayload": "_event_seq"}


def to_eight_from_nine(properties: Properties, name: str) -> dict[str, str]:
    """Raises: Unsupported for what version 8 cannot say: several ordering columns, or filling without a class."""
    payload = properties.get(LEGACY_PAYLOAD, "")
    known = short(payload)
    mode = properties.get(MODE, MergeMode.COMMIT_TIME.value)
    if PARTIAL_UPDATE_MODE in properties and not LEGACY_PAYLOADS.get(known):
        raise Unsupported(
            f"table '{name}': {PARTIAL_UPDATE_MODE}='{properties[PARTIAL_UPDATE_MODE]}': version 8 says this by a "
            "payload class, and the table names none; it stays at version 9"
        )

    ordering = _OWN_ORDERING.get(known) or properties.get(ORDERING, "")
    if "," in ordering:
        raise Unsupported(
            f"table '{name}': {ORDERING}='{ordering}': version 8 has one ordering column; it stays at version 9"
        )

    marks = {
        key: properties[MERGE_PROPERTY + key]
        for key in (DELETE_FIELD, DELETE_MARKER)
        if MERGE_PROPERTY + key in properties and known in ("", *_PLAIN)
    }
    now = {key: text for key, text in properties.items() if not key.startswith(MERGE_PROPERTY)}
    now = without(now, LEGACY_PAYLOAD, PARTIAL_UPDATE_MODE, ORDERING)
    if known and known not in _PLAIN:
        mode = MergeMode.CUSTOM.value
        now |= {STRATEGY: IDS[mode], PAYLOAD: payload}
    elif mode != MergeMode.CUSTOM:
        # Seen: an upgrade from 6 in one go names the class of before, whatever the mode. Version 8 wants them to agree.
        fits = known != "" and _MODES[known] == mode
        now |= {STRATEGY: IDS[mode], PAYLOAD: payload if fits else PAYLOADS[mode]}
    return {**now, MODE: mode, **marks, **({PRECOMBINE: ordering} if ordering else {})}
