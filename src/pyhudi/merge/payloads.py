"""The merge rules that a table's properties ask for, as a merge mode, a merge strategy or a payload class.

Spec: format/log-format.md section 6 and 6.1, format/layout.md section 2.3, format/versions.md section 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.merge.first_value import FirstValue
from pyhudi.merge.mergers import COMMIT_TIME_ID, CUSTOM_ID, EVENT_TIME_ID, PAYLOAD_ID, find_merger, find_payload_merger
from pyhudi.merge.rules import DeleteMark, DeleteRule, Fill, MergeMode, MergeRules, commit_time, custom, event_time
from pyhudi.versions import Merging, TableVersion

MERGE_PROPERTY: Final = "hoodie.record.merge.property."
DELETE_FIELD: Final = "hoodie.payload.delete.field"
DELETE_MARKER: Final = "hoodie.payload.delete.marker"
PARTIAL_UPDATE_MODE: Final = "hoodie.table.partial.update.mode"
UNAVAILABLE: Final = "hoodie.write.partial.update.unavailable.value"
_PACKAGES: Final = ("org.apache.hudi.common.model.debezium.", "org.apache.hudi.common.model.", "com.uber.hoodie.")

_LATEST: Final = "OverwriteWithLatestAvroPayload"
_MODES: Final = {
    _LATEST: MergeMode.COMMIT_TIME,
    "DefaultHoodieRecordPayload": MergeMode.EVENT_TIME,
    "EventTimeAvroPayload": MergeMode.EVENT_TIME,
}
_TOASTED: Final = "__debezium_unavailable_value"
_DEBEZIUM_DELETE: Final = DeleteMark("_change_operation_type", "d", ignores_case=True)


@dataclass(frozen=True, slots=True)
class LegacyPayload:
    """What version 9 stores instead of a payload class: a mode, properties, and ordering columns of the class's own."""

    mode: MergeMode
    properties: Mapping[str, str] = field(default_factory=dict)
    ordering: str = ""


def _deletes(column: str, text: str) -> dict[str, str]:
    return {MERGE_PROPERTY + DELETE_FIELD: column, MERGE_PROPERTY + DELETE_MARKER: text}


_IGNORES_DEFAULTS: Final = {PARTIAL_UPDATE_MODE: Fill.DEFAULTS.value}
_FILLS_TOASTED: Final = {PARTIAL_UPDATE_MODE: Fill.UNAVAILABLE.value, MERGE_PROPERTY + UNAVAILABLE: _TOASTED}

LEGACY_PAYLOADS: Final[Mapping[str, LegacyPayload]] = {
    _LATEST: LegacyPayload(MergeMode.COMMIT_TIME),
    "DefaultHoodieRecordPayload": LegacyPayload(MergeMode.EVENT_TIME),
    "EventTimeAvroPayload": LegacyPayload(MergeMode.EVENT_TIME),
    "PartialUpdateAvroPayload": LegacyPayload(MergeMode.EVENT_TIME, _IGNORES_DEFAULTS),
    "OverwriteNonDefaultsWithLatestAvroPayload": LegacyPayload(MergeMode.COMMIT_TIME, _IGNORES_DEFAULTS),
    "AWSDmsAvroPayload": LegacyPayload(MergeMode.COMMIT_TIME, _deletes("Op", "D")),
    "PostgresDebeziumAvroPayload": LegacyPayload(
        MergeMode.EVENT_TIME, {**_deletes("_change_operation_type", "d"), **_FILLS_TOASTED}, "_event_lsn"
    ),
    "MySqlDebeziumAvroPayload": LegacyPayload(
        MergeMode.EVENT_TIME, _deletes("_change_operation_type", "d"), "_event_bin_file,_event_pos"
    ),
}
"""By class name without package. Spec: format/log-format.md section 6.1, format/versions.md section 3, "8→9"."""


def merge_rules(properties: Mapping[str, str], *, version: TableVersion, path: str) -> MergeRules:
    """The merge rules of a table with these properties and this version. `path` names the table in messages.

    Raises: Unsupported for payload classes and strategies that only Java code knows, by name; CorruptFile for
    properties that contradict each other.
    """
    ordering = _fields(
        properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field", "")
    )
    marks = _marks(properties, path=path)
    payload = _short(properties.get("hoodie.compaction.payload.class", ""))

    if version.merging is Merging.PAYLOAD and payload:
        return _by_payload_before_8(payload, ordering, marks, path=path)

    match _mode(properties, payload, ordering, version=version, path=path):
        case MergeMode.COMMIT_TIME:
            rules = commit_time(marks=marks)
        case MergeMode.EVENT_TIME:
            rules = event_time(ordering=ordering, marks=marks)
        case MergeMode.CUSTOM:
            return _custom(properties, payload, ordering, marks, version=version, path=path)
    return _with_partial_updates(rules, properties, path=path) if version.has_partial_update_modes else rules


def _mode(
    properties: Mapping[str, str], payload: str, ordering: tuple[str, ...], *, version: TableVersion, path: str
) -> MergeMode:
    """The stored merge mode. If none is stored, the mode that strategy, payload class or ordering columns imply."""
    strategy = _strategy(properties, version=version)
    by_strategy = _mode_of_strategy(strategy) if strategy else None
    by_payload = _MODES.get(payload, MergeMode.CUSTOM) if payload else None

    stored = properties.get("hoodie.record.merge.mode", "").strip().upper()
    if stored and stored not in list(MergeMode):
        expected = f"one of {', '.join(MergeMode)} as hoodie.record.merge.mode"
        raise CorruptFile(path, 0, expected=expected, found=f"'{stored}'")

    implied = by_strategy or by_payload
    mode = MergeMode(stored) if stored else implied
    if mode is None:
        mode = MergeMode.EVENT_TIME if ordering else MergeMode.COMMIT_TIME

    # From version 8 on, strategy and payload class must agree with the mode.
    others = {"strategy": by_strategy, "payload class": by_payload} if version.merging is not Merging.PAYLOAD else {}
    for what, other in others.items():
        if mode is not MergeMode.CUSTOM and other not in (None, mode):
            found = f"a merge {what} that means {other}: '{strategy if what == 'strategy' else payload}'"
            raise CorruptFile(path, 0, expected=f"what goes with the merge mode {mode}", found=found)
    return mode


def _custom(
    properties: Mapping[str, str],
    payload: str,
    ordering: tuple[str, ...],
    marks: tuple[DeleteMark, ...],
    *,
    version: TableVersion,
    path: str,
) -> MergeRules:
    strategy = _strategy(properties, version=version)
    if strategy and strategy != PAYLOAD_ID and (merger := find_merger(strategy)) is not None:
        return custom(merger, ordering=ordering, marks=marks)
    if payload and (not strategy or strategy in (PAYLOAD_ID, CUSTOM_ID)):
        return _by_payload_from_8(payload, ordering, marks, path=path)
    raise Unsupported(
        f"{path}: hoodie.record.merge.strategy.id='{strategy}': expected a merge strategy with a merger in this "
        "process, found none; register one under this id with pyhudi.register_merger"
    )


def _by_payload_before_8(
    payload: str, ordering: tuple[str, ...], marks: tuple[DeleteMark, ...], *, path: str
) -> MergeRules:
    """Merges as the 0.x releases do, which made these versions. Spec: format/log-format.md section 6, "Legacy"."""
    if payload == _LATEST:
        rules = _log_by_ordering(ordering, marks)
    elif payload in _MODES:
        rules = event_time(ordering=ordering, marks=marks)
    else:
        rules = _by_payload_from_8(payload, ordering, marks, path=path)
    # Seen: in 0.15 these classes let a log row that is marked as deleted win over any base row, by no ordering value.
    row_deletes_win = payload in ("EventTimeAvroPayload", "PartialUpdateAvroPayload")
    return replace(rules, deletes=DeleteRule.ARRIVAL, row_deletes_win=row_deletes_win)


def _by_payload_from_8(
    payload: str, ordering: tuple[str, ...], marks: tuple[DeleteMark, ...], *, path: str
) -> MergeRules:
    """The rules of a payload class: `preCombine` within the log, `combineAndGetUpdateValue` with the base row."""
    match payload:
        case "PartialUpdateAvroPayload":
            rules = event_time(ordering=ordering, marks=marks)
            return replace(rules, fill=Fill.NULLS, fills_log=True, newer_meta_fields=True)
        case "OverwriteNonDefaultsWithLatestAvroPayload":
            return replace(_log_by_ordering(ordering, marks), fill=Fill.DEFAULTS)
        case "AWSDmsAvroPayload":
            return _log_by_ordering(ordering, (*marks, DeleteMark("Op", "D", ignores_case=True)))
        case "FirstValueAvroPayload":
            return custom(FirstValue(ordering), ordering=ordering, marks=marks)
        case "HoodieAvroPayload":  # of Java's own client; seen: the later row wins, whatever it holds (0.13.1, 0.15.0)
            return commit_time(marks=())
        case "PostgresDebeziumAvroPayload" if ordering == ("_event_lsn",):
            rules = event_time(ordering=ordering, marks=(*marks, _DEBEZIUM_DELETE))
            return replace(rules, fill=Fill.UNAVAILABLE, unavailable=_TOASTED)
        case "PostgresDebeziumAvroPayload" | "MySqlDebeziumAvroPayload":
            raise Unsupported(
                f"{path}: hoodie.compaction.payload.class='{payload}' with the ordering {', '.join(ordering) or 'none'}"
                ": it compares other columns than the table's; upgrade the table to version 9 with Apache Hudi, "
                "which makes them its ordering"
            )
        case _ if payload in _MODES:
            # Stored together with the mode CUSTOM. Then only the payload class tells how rows are merged.
            return commit_time(marks=marks) if payload == _LATEST else event_time(ordering=ordering, marks=marks)
        case _ if (merger := find_payload_merger(payload)) is not None:
            return custom(merger, ordering=ordering, marks=marks)
        case _:
            raise Unsupported(
                f"{path}: hoodie.compaction.payload.class='{payload}': expected one of Apache Hudi's, found one "
                "whose merge is Java code that cannot be run; register a merger that does the same in this process, "
                f"with pyhudi.register_payload_class('{payload}', ...), or store a merge strategy of your own and "
                "register its merger with pyhudi.register_merger"
            )


def _log_by_ordering(ordering: tuple[str, ...], marks: tuple[DeleteMark, ...]) -> MergeRules:
    """Within the log the greatest ordering value wins.

    The winner replaces the base row, whatever its ordering value.
    """
    return replace(event_time(ordering=ordering, marks=marks), base_by_ordering=False)


def _with_partial_updates(rules: MergeRules, properties: Mapping[str, str], *, path: str) -> MergeRules:
    """Spec: format/log-format.md section 6.2, "Table partial-update modes"."""
    text = properties.get(PARTIAL_UPDATE_MODE, "").strip().upper()
    match text:
        case "":
            return rules
        case Fill.DEFAULTS:
            return replace(rules, fill=Fill.DEFAULTS, fills_log=True)
        case Fill.UNAVAILABLE:
            marker = merge_property(properties, UNAVAILABLE)
            if not marker:
                return rules  # Seen: 1.2.0 fills nothing then.
            return replace(rules, fill=Fill.UNAVAILABLE, fills_log=True, unavailable=marker)
        case _:
            raise Unsupported(
                f"{path}: hoodie.table.partial.update.mode='{text}': expected {Fill.DEFAULTS} or {Fill.UNAVAILABLE}"
            )


def _marks(properties: Mapping[str, str], *, path: str) -> tuple[DeleteMark, ...]:
    column, text = merge_property(properties, DELETE_FIELD), merge_property(properties, DELETE_MARKER)
    if bool(column) != bool(text):
        found = f"'{column}' and '{text}'"
        raise CorruptFile(path, 0, expected=f"{DELETE_FIELD} together with {DELETE_MARKER}", found=found)
    return (DeleteMark(column, text),) if column else ()


def merge_property(properties: Mapping[str, str], name: str) -> str:
    """A property about merging, which version 9 stores under another name. Empty if the table has none."""
    return properties.get(MERGE_PROPERTY + name) or properties.get(name, "")


def _strategy(properties: Mapping[str, str], *, version: TableVersion) -> str:
    """Seen: upgraded tables keep the id under its name from before version 8, even where it contradicts the mode."""
    return properties.get(version.strategy_property, "").strip().lower()


def _mode_of_strategy(strategy: str) -> MergeMode:
    known = {EVENT_TIME_ID: MergeMode.EVENT_TIME, COMMIT_TIME_ID: MergeMode.COMMIT_TIME}
    return known.get(strategy, MergeMode.CUSTOM)


def _short(payload: str) -> str:
    """A payload class of Apache Hudi without its package. Any other class name stays as it is."""
    payload = payload.strip()
    package = next((one for one in _PACKAGES if payload.startswith(one)), "")
    return payload.removeprefix(package)


def _fields(text: str) -> tuple[str, ...]:
    return tuple(field.strip() for field in text.split(",") if field.strip())
