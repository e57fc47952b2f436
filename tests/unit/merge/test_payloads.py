"""A table could be merged by other rules than its properties ask for, or by none that we have without a word."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.merge import mergers
from pyhudi.merge.mergers import COMMIT_TIME_ID, CUSTOM_ID, EVENT_TIME_ID, PAYLOAD_ID, find_merger, register_merger
from pyhudi.merge.payloads import merge_rules
from pyhudi.merge.rules import DeleteMark, DeleteRule, Fill, MergeRules, commit_time, custom, event_time
from pyhudi.options.registered import OwnKind, Registered
from pyhudi.versions import VERSIONS

MODEL = "org.apache.hudi.common.model."
DEBEZIUM = "org.apache.hudi.common.model.debezium."
MINE = "01234567-89ab-cdef-0123-456789abcdef"
TS = ("ts",)
BY_TIME, LATEST = event_time(ordering=TS), commit_time()
LOG_BY_TIME = replace(BY_TIME, base_by_ordering=False)
PARTIAL = replace(BY_TIME, fill=Fill.NULLS, fills_log=True, newer_meta_fields=True)
POSTGRES = replace(
    event_time(ordering=("_event_lsn",), marks=(DeleteMark("_change_operation_type", "d", ignores_case=True),)),
    fill=Fill.UNAVAILABLE,
    unavailable="__debezium_unavailable_value",
)
DMS = replace(LOG_BY_TIME, marks=(DeleteMark("Op", "D", ignores_case=True),))


class NewerMerger:
    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        return newer


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of mergers of its own."""
    monkeypatch.setattr(mergers, "_mergers", Registered(OwnKind.MERGER, lambda factory: factory))


def rules_of(version: int, **properties: str) -> MergeRules:
    names = {
        "payload": "hoodie.compaction.payload.class",
        "legacy": "hoodie.table.legacy.payload.class",
        "mode": "hoodie.record.merge.mode",
        "strategy": "hoodie.record.merge.strategy.id",
        "strategy_before_8": "hoodie.compaction.record.merger.strategy",
        "ordering": "hoodie.table.ordering.fields" if version >= 9 else "hoodie.table.precombine.field",
        "partial": "hoodie.table.partial.update.mode",
        "marker": "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",
        "delete_field": "hoodie.record.merge.property.hoodie.payload.delete.field",
        "delete_marker": "hoodie.record.merge.property.hoodie.payload.delete.marker",
    }
    return merge_rules({names[name]: value for name, value in properties.items()}, version=VERSIONS[version], path="t")


def arrival(rules: MergeRules) -> MergeRules:
    return replace(rules, deletes=DeleteRule.ARRIVAL)


@pytest.mark.parametrize(
    "payload,expected",
    [
        ("OverwriteWithLatestAvroPayload", arrival(LOG_BY_TIME)),
        ("DefaultHoodieRecordPayload", arrival(BY_TIME)),
        ("EventTimeAvroPayload", replace(arrival(BY_TIME), row_deletes_win=True)),
        ("PartialUpdateAvroPayload", replace(arrival(PARTIAL), row_deletes_win=True)),
        ("OverwriteNonDefaultsWithLatestAvroPayload", replace(arrival(LOG_BY_TIME), fill=Fill.DEFAULTS)),
        ("AWSDmsAvroPayload", arrival(DMS)),
    ],
)
def test_before_version_8_the_payload_class_decides(payload: str, expected: MergeRules) -> None:
    """Whatever strategy is stored: 0.15 stores the same for every payload."""
    for prefix in (MODEL, "com.uber.hoodie.", ""):
        found = rules_of(6, payload=prefix + payload, ordering="ts", strategy_before_8=EVENT_TIME_ID)
        assert found == expected


@pytest.mark.parametrize(
    "payload,expected",
    [
        ("PartialUpdateAvroPayload", PARTIAL),
        ("OverwriteNonDefaultsWithLatestAvroPayload", replace(LOG_BY_TIME, fill=Fill.DEFAULTS)),
        ("AWSDmsAvroPayload", DMS),
        ("EventTimeAvroPayload", BY_TIME),
    ],
)
def test_in_version_8_payloads_go_with_the_mode_custom(payload: str, expected: MergeRules) -> None:
    assert rules_of(8, mode="CUSTOM", strategy=PAYLOAD_ID, payload=MODEL + payload, ordering="ts") == expected
    if payload != "EventTimeAvroPayload":
        assert rules_of(8, payload=MODEL + payload, ordering="ts") == expected


def test_postgres_payload_orders_by_its_log_number() -> None:
    payload = DEBEZIUM + "PostgresDebeziumAvroPayload"

    assert rules_of(8, mode="CUSTOM", payload=payload, ordering="_event_lsn") == POSTGRES
    assert rules_of(6, payload=payload, ordering="_event_lsn") == arrival(POSTGRES)
    with pytest.raises(Unsupported, match=r"PostgresDebeziumAvroPayload.*ordering ts.*upgrade"):
        rules_of(6, payload=payload, ordering="ts")


@pytest.mark.parametrize(
    "properties,expected",
    [
        ({"mode": "EVENT_TIME_ORDERING", "strategy": EVENT_TIME_ID}, BY_TIME),
        ({"mode": "EVENT_TIME_ORDERING", "payload": MODEL + "DefaultHoodieRecordPayload"}, BY_TIME),
        ({"mode": "COMMIT_TIME_ORDERING", "payload": MODEL + "OverwriteWithLatestAvroPayload"}, LATEST),
        ({"mode": "COMMIT_TIME_ORDERING", "strategy_before_8": EVENT_TIME_ID}, LATEST),
        ({"strategy": COMMIT_TIME_ID}, LATEST),
        ({"strategy": COMMIT_TIME_ID.upper()}, LATEST),
        ({"payload": MODEL + "OverwriteWithLatestAvroPayload"}, LATEST),
        ({}, BY_TIME),
    ],
)
def test_version_8_has_modes(properties: dict[str, str], expected: MergeRules) -> None:
    assert rules_of(8, ordering="ts", **properties) == expected


def test_without_a_word_the_ordering_decides() -> None:
    assert rules_of(8) == rules_of(9) == rules_of(6) == commit_time()
    assert rules_of(6, ordering="ts") == BY_TIME
    assert rules_of(6, ordering="ts", strategy_before_8=COMMIT_TIME_ID) == LATEST


@pytest.mark.parametrize(
    "properties,expected",
    [
        ({"mode": "EVENT_TIME_ORDERING"}, BY_TIME),
        ({"mode": "COMMIT_TIME_ORDERING", "legacy": MODEL + "PartialUpdateAvroPayload"}, LATEST),
        (
            {"mode": "EVENT_TIME_ORDERING", "partial": "IGNORE_DEFAULTS"},
            replace(BY_TIME, fill=Fill.DEFAULTS, fills_log=True),
        ),
        (
            {"mode": "COMMIT_TIME_ORDERING", "partial": "IGNORE_DEFAULTS"},
            replace(LATEST, fill=Fill.DEFAULTS, fills_log=True),
        ),
        (
            {"mode": "EVENT_TIME_ORDERING", "partial": "FILL_UNAVAILABLE", "marker": "gone"},
            replace(BY_TIME, fill=Fill.UNAVAILABLE, fills_log=True, unavailable="gone"),
        ),
        ({"mode": "EVENT_TIME_ORDERING", "partial": "FILL_UNAVAILABLE"}, BY_TIME),
        (
            {"mode": "EVENT_TIME_ORDERING", "delete_field": "op", "delete_marker": "D"},
            replace(BY_TIME, marks=(DeleteMark("op", "D"),)),
        ),
    ],
)
def test_version_9_has_modes_and_merge_properties(properties: dict[str, str], expected: MergeRules) -> None:
    assert rules_of(9, ordering="ts", **properties) == expected


def test_several_ordering_columns_are_compared_in_their_order() -> None:
    found = rules_of(9, mode="EVENT_TIME_ORDERING", ordering="_event_bin_file, _event_pos")

    assert found.ordering == ("_event_bin_file", "_event_pos")


@pytest.mark.parametrize(
    "version,properties,words",
    [
        (6, {"payload": "com.acme.MyPayload"}, r"'com\.acme\.MyPayload'.*Java"),
        (9, {"mode": "CUSTOM", "strategy": PAYLOAD_ID, "payload": "com.acme.MyPayload"}, r"com\.acme\.MyPayload"),
        (8, {"mode": "CUSTOM", "payload": DEBEZIUM + "MySqlDebeziumAvroPayload"}, "MySqlDebeziumAvroPayload.*upgrade"),
        (9, {"mode": "CUSTOM", "strategy": MINE}, f"{MINE}.*register"),
        (9, {"mode": "CUSTOM", "strategy": CUSTOM_ID}, f"{CUSTOM_ID}.*register"),
        (9, {"partial": "KEEP_VALUES"}, "KEEP_VALUES.*IGNORE_DEFAULTS"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(version: int, properties: dict[str, str], words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        rules_of(version, **properties)


@pytest.mark.parametrize(
    "properties",
    [
        {"mode": "SOMETIMES"},
        {"mode": "EVENT_TIME_ORDERING", "strategy": COMMIT_TIME_ID},
        {"mode": "COMMIT_TIME_ORDERING", "payload": MODEL + "DefaultHoodieRecordPayload"},
        {"strategy": EVENT_TIME_ID, "payload": MODEL + "OverwriteWithLatestAvroPayload"},
        {"delete_field": "op"},
        {"delete_marker": "D"},
    ],
)
def test_properties_that_contradict_each_other_are_corrupt(properties: dict[str, str]) -> None:
    with pytest.raises(CorruptFile):
        rules_of(8, **properties)


@pytest.mark.usefixtures("registry")
def test_a_registered_merger_is_found_by_its_strategy() -> None:
    register_merger(MINE.upper(), NewerMerger)
    register_merger(MINE, NewerMerger)

    found = rules_of(9, mode="CUSTOM", strategy=MINE, ordering="ts")

    assert isinstance(found.merger, NewerMerger)
    assert replace(found, merger=None) == replace(custom(NewerMerger(), ordering=TS), merger=None)
    assert found.deletes is DeleteRule.ORDERED
    assert isinstance(pickle.loads(pickle.dumps(found)).merger, NewerMerger)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("strategy", ["mine", EVENT_TIME_ID, COMMIT_TIME_ID, PAYLOAD_ID])
def test_ids_that_are_no_strategy_of_ones_own_are_refused(strategy: str) -> None:
    with pytest.raises(Invalid, match=strategy):
        register_merger(strategy, NewerMerger)


@pytest.mark.usefixtures("registry")
def test_a_strategy_has_one_merger() -> None:
    register_merger(MINE, NewerMerger)

    with pytest.raises(Invalid, match=f"{MINE}.*NewerMerger"):
        register_merger(MINE, type("Other", (NewerMerger,), {}))


@pytest.mark.usefixtures("registry")
def test_a_definition_that_runs_again_takes_the_place_of_the_earlier_one() -> None:
    """As the cell of a notebook does."""
    again = type("NewerMerger", (NewerMerger,), {"__module__": __name__})
    register_merger(MINE, NewerMerger)

    register_merger(MINE, again)

    assert type(find_merger(MINE)) is again


def test_columns_to_read_are_those_wanted_and_those_that_decide() -> None:
    present = ["_hoodie_commit_time", "_hoodie_record_key", "a", "b", "op", "ts", "at", "_hoodie_is_deleted"]
    rules = event_time(ordering=("ts", "at.time"), marks=(DeleteMark("op", "D"),))

    assert rules.columns_needed(["b"], present) == ("_hoodie_record_key", "b", "op", "ts", "at", "_hoodie_is_deleted")
    assert custom(NewerMerger(), ordering=TS).columns_needed(["b"], present) == tuple(present)
