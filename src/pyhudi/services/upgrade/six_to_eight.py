"""Version 6 to 8: a merge mode, the kind of the key generator, the folders of the timeline.

Spec: format/versions.md section 3, "7→8". Seen: `raw/upgrade_chain_*` (1.2.0).
"""

from pyhudi.errors import Invalid
from pyhudi.merge.rules import MergeMode
from pyhudi.services.upgrade.facts import (
    DEFAULT_PAYLOAD,
    IDS,
    INITIAL_VERSION,
    KEY_GENERATOR,
    LATEST_PAYLOAD,
    MODE,
    PARTITION_FIELDS,
    PAYLOAD,
    PAYLOADS,
    STRATEGY,
    Properties,
    short,
)
from pyhudi.table.facts.config import KeyKind, TableConfig
from pyhudi.table.facts.key_properties import OWN_GENERATOR

_PLAIN = (DEFAULT_PAYLOAD, LATEST_PAYLOAD, "EventTimeAvroPayload")


def to_eight(properties: Properties, config: TableConfig) -> dict[str, str]:
    """Seen: the payload class follows the mode; the strategy id of before and the class of the key generator stay."""
    mode = _mode(properties, config)
    payload = properties.get(PAYLOAD, "") if mode is MergeMode.CUSTOM else PAYLOADS[mode]
    return {
        **properties,
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        INITIAL_VERSION: properties.get(INITIAL_VERSION, str(config.version)),
        KEY_GENERATOR: OWN_GENERATOR if config.key_kind is KeyKind.OTHER else config.key_kind.value,
        **_partition_fields(properties, config),
        MODE: mode.value,
        PAYLOAD: payload,
        STRATEGY: IDS[mode],
    }


def _mode(properties: Properties, config: TableConfig) -> MergeMode:
    payload = short(properties.get(PAYLOAD, ""))
    if payload and payload not in _PLAIN:
        return MergeMode.CUSTOM
    by_event_time = config.ordering if config.is_merge_on_read else payload == DEFAULT_PAYLOAD
    return MergeMode.EVENT_TIME if by_event_time or payload == DEFAULT_PAYLOAD else MergeMode.COMMIT_TIME


def _partition_fields(properties: Properties, config: TableConfig) -> dict[str, str]:
    """Seen: a custom key generator stores the kinds of its columns from version 8 on."""
    fields = [field for field in properties.get(PARTITION_FIELDS, "").split(",") if field]
    if config.key_kind is KeyKind.CUSTOM and not all(":" in field for field in fields):
        raise Invalid(
            f"table '{config.name}': its custom key generator's partition columns ({', '.join(fields)}) need their "
            "kinds in version 8, which this table does not state; upgrade it with Apache Hudi, whose writer is told "
            "them by hoodie.datasource.write.partitionpath.field"
        )
    return {}
