"""What steps between versions share: the names and classes that properties spell."""

from collections.abc import Mapping
from typing import Final

from pyhudi.merge.mergers import COMMIT_TIME_ID, EVENT_TIME_ID, PAYLOAD_ID
from pyhudi.merge.rules import MergeMode

Properties = Mapping[str, str]

MODE: Final = "hoodie.record.merge.mode"
STRATEGY: Final = "hoodie.record.merge.strategy.id"
PAYLOAD: Final = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD: Final = "hoodie.table.legacy.payload.class"
PRECOMBINE: Final = "hoodie.table.precombine.field"
ORDERING: Final = "hoodie.table.ordering.fields"
PARTITION_FIELDS: Final = "hoodie.table.partition.fields"
KEY_GENERATOR: Final = "hoodie.table.keygenerator.type"
KEY_GENERATOR_CLASS: Final = "hoodie.table.keygenerator.class"
CHANGE_MODE: Final = "hoodie.table.cdc.supplemental.logging.mode"
INITIAL_VERSION: Final = "hoodie.table.initial.version"

DEFAULT_PAYLOAD: Final = "DefaultHoodieRecordPayload"
LATEST_PAYLOAD: Final = "OverwriteWithLatestAvroPayload"
_PACKAGE: Final = "org.apache.hudi.common.model."

IDS: Final[Mapping[str, str]] = {
    MergeMode.EVENT_TIME: EVENT_TIME_ID,
    MergeMode.COMMIT_TIME: COMMIT_TIME_ID,
    MergeMode.CUSTOM: PAYLOAD_ID,
}
PAYLOADS: Final[Mapping[str, str]] = {
    MergeMode.EVENT_TIME: _PACKAGE + DEFAULT_PAYLOAD,
    MergeMode.COMMIT_TIME: _PACKAGE + LATEST_PAYLOAD,
}


def short(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def without(properties: Properties, *names: str) -> dict[str, str]:
    return {name: text for name, text in properties.items() if name not in names}
