"""Version 8 to 6: a payload class instead of a merge mode, the class of the key generator, the timeline in `.hoodie`.

Spec: format/versions.md section 3, "8→7 (→6)". Seen: `raw/upgrade_chain_*` (1.2.0).
"""

from pyhudi.errors import Unsupported
from pyhudi.merge.rules import MergeMode
from pyhudi.services.upgrade.facts import (
    INITIAL_VERSION,
    KEY_GENERATOR,
    KEY_GENERATOR_CLASS,
    MODE,
    PARTITION_FIELDS,
    PAYLOAD,
    PAYLOADS,
    STRATEGY,
    Properties,
    without,
)
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.facts.key_properties import bare_name, key_generator_class

_GONE = (
    MODE, STRATEGY, KEY_GENERATOR, INITIAL_VERSION, "hoodie.bootstrap.index.type", "hoodie.timeline.path",
    "hoodie.timeline.history.path",
)  # fmt: skip


def to_six(properties: Properties, config: TableConfig) -> dict[str, str]:
    """Raises: Unsupported for a merger of one's own, which version 6 cannot name."""
    mode = properties.get(MODE) or config.merge_mode.value
    payload = properties.get(PAYLOAD) or PAYLOADS.get(mode, "")
    if not payload:
        raise Unsupported(
            f"table '{config.name}': {MODE}={MergeMode.CUSTOM} without a payload class: version 6 merges by payload "
            "classes alone; it stays at its version"
        )
    fields = [bare_name(field) for field in properties.get(PARTITION_FIELDS, "").split(",") if field]
    return {
        **without(properties, *_GONE),
        KEY_GENERATOR_CLASS: properties.get(KEY_GENERATOR_CLASS) or key_generator_class(config.key_kind.value),
        PAYLOAD: payload,
        "hoodie.archivelog.folder": "archived",
        **({PARTITION_FIELDS: ",".join(fields)} if fields else {}),
    }
