"""An option could be misspelt and ignored, contradict the table, or promise what nobody keeps.

Each way must end in an error that names the option, what was found and what is expected; what has no effect
must be said once.
"""

import logging
import subprocess
import sys
from collections.abc import Mapping
from importlib import resources

import pytest

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options import resolve as options
from pyhudi.options import verdicts as option_table
from pyhudi.options.entries import Kind
from pyhudi.options.names import ALIASES, canonical_name, known_names
from pyhudi.options.read_options import FALLBACK, ReadRequest, read_request_from_options
from pyhudi.options.resolve import check_known, check_table_facts, find_fact, merge_options, without_others
from pyhudi.options.table_facts import Fact, TableFacts
from pyhudi.options.verdicts import find_entry

FACTS = TableFacts(
    name="trips",
    table_type="COPY_ON_WRITE",
    version=8,
    record_key=("id",),
    partition_by=("city",),
    ordering=("ts",),
    key_generator="SIMPLE",
    merge_mode="EVENT_TIME_ORDERING",
)


@pytest.fixture(autouse=True)
def nothing_named_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_named", set())


def merged(
    *,
    write: Mapping[str, object] | None = None,
    opened: Mapping[str, object] | None = None,
    table: Mapping[str, str] | None = None,
) -> dict[str, str]:
    return merge_options(write=write, opened=opened, table=table or {})


def message(error: pytest.ExceptionInfo[Exception]) -> str:
    return str(error.value)


# names


def test_the_list_of_names_is_sorted_and_without_doubles() -> None:
    lines = resources.files("pyhudi.options").joinpath("names.txt").read_text().splitlines()

    assert lines == sorted(set(lines))
    assert len(lines) > 750


def test_every_name_that_has_a_meaning_here_is_known() -> None:
    for name in option_table.ENTRIES:
        check_known(name)
    for old, new in ALIASES.items():
        check_known(old)
        check_known(new)
        assert canonical_name(new) == new


def test_every_prefix_with_a_meaning_has_known_names() -> None:
    names, prefixes = known_names()
    for prefix in option_table.OPEN_ENDED:
        assert any(name.startswith(prefix) for name in (*names, *prefixes)), prefix


@pytest.mark.parametrize(
    "name,nearest",
    [
        ("hoodie.upsert.shuffle.paralelism", "hoodie.upsert.shuffle.parallelism"),
        ("hoodie.write.lock.provder", "hoodie.write.lock.provider"),
        ("as.of.instnat", "as.of.instant"),
        ("hodie.table.name", "hoodie.table.name"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(Invalid) as error:
        check_known(name)

    assert f"option '{name}'" in message(error)
    assert f"nearest known name is '{nearest}'" in message(error)


@pytest.mark.parametrize(
    "name,nearest",
    [
        ("hoodie.clustering.plan.strategy.sort.colums", "hoodie.clustering.plan.strategy.sort.columns"),
        ("hoodie.clustering.plan.strategy.sortColumns", "hoodie.clustering.plan.strategy.sort.columns"),
        ("hoodie.clustering.plan.strategy.small.file.limt", "hoodie.clustering.plan.strategy.small.file.limit"),
        ("hoodie.partition.ttl.strategy.day.retain", "hoodie.partition.ttl.strategy.days.retain"),
        ("hoodie.aws.secret_key", "hoodie.aws.secret.key"),
        ("hoodie.streamer.schemaproviders.class", "hoodie.streamer.schemaprovider.class"),
        ("hoodie.deltastreamer.keygen.timebased.timestamp.typ", "hoodie.deltastreamer.keygen.timebased.timestamp.type"),
    ],
)
def test_a_misspelled_name_of_an_open_ended_group_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(Invalid) as error:
        check_known(name)

    assert f"nearest known name is '{nearest}'" in message(error)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.clustering.plan.strategy.of.ours.columns",
        "hoodie.clustering.plan.strategy.min.num.groups",
        "hoodie.clustering.plan.strategy.columns",
        "hoodie.partition.ttl.strategy.hours.retain",
        "hoodie.datasource.meta.sync.glue.new_partitions_read_parallelism",
        "hoodie.streamer.source.kafka.key.deserializer.class",
        "hoodie.record.merge.property.mine",
    ],
)
def test_names_of_strategies_of_others_are_known(name: str) -> None:
    check_known(name)


def test_a_name_without_a_neighbour_is_refused_all_the_same() -> None:
    with pytest.raises(Invalid, match=r"option 'zzz': .*no known name is near it"):
        check_known("zzz")


def test_options_of_a_dataframe_that_are_none_of_hudis_are_left_out() -> None:
    """A misspelled name is one of Hudi's, and so is what goes into the metadata of a commit."""
    prefix = {"hoodie.datasource.write.commitmeta.key.prefix": "note."}
    kept = {"hoodie.no.such": "1", "HOODIE.TABLE.NAME": "t", "as.of.instnat": "0", "path": "/t", "pyhudi.where": "x"}

    assert without_others({**kept, "_note": "x", "className": "org.apache.hudi", "header": "true"}) == {
        **kept, "_note": "x",
    }  # fmt: skip
    assert without_others({**prefix, "note.author": "x", "_note": "x"}) == {**prefix, "note.author": "x"}


@pytest.mark.parametrize("name", ["table.name", "write.operation", "metadata.enable"])
def test_a_name_that_lacks_its_beginning_is_not_left_out(name: str) -> None:
    assert without_others({name: "x"}) == {name: "x"}


@pytest.mark.parametrize("name", ["path", "as.of.instant", "hoodie.streamer.source.kafka.topic", "hoodie.table.name"])
def test_known_names_pass(name: str) -> None:
    check_known(name)


def test_an_open_ended_name_needs_an_ending() -> None:
    with pytest.raises(Invalid, match=r"'hoodie.record.merge.property.'"):
        check_known("hoodie.record.merge.property.")


# merging


def test_the_nearer_place_wins() -> None:
    name = "hoodie.parquet.max.file.size"

    assert merged(write={name: 1}, opened={name: 2}, table={name: "3"})[name] == "1"
    assert merged(opened={name: 2}, table={name: "3"})[name] == "2"
    assert merged(table={name: "3"})[name] == "3"


def test_values_become_text() -> None:
    found = merged(
        write={
            "hoodie.metadata.enable": True,
            "hoodie.index.bloom.fpp": 1e-9,
            "hoodie.combine.before.insert": "x",
        }
    )

    assert found["hoodie.metadata.enable"] == "true"
    assert float(found["hoodie.index.bloom.fpp"]) == 1e-9
    assert found["hoodie.combine.before.insert"] == "x"


@pytest.mark.parametrize("value,kind", [(None, "NoneType"), ([1], "list")])
def test_a_value_that_is_no_text_is_refused(value: object, kind: str) -> None:
    with pytest.raises(
        Invalid, match=rf"option 'hoodie.metadata.enable'=.*expected text, a number or a bool, found {kind}"
    ):
        merged(write={"hoodie.metadata.enable": value})


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(Invalid, match=r"option 7: expected a name as text, found int"):
        merge_options(write={7: "x"}, opened=None, table={})  # type: ignore[dict-item]


def test_an_older_spelling_counts_as_the_newest() -> None:
    found = merged(write={"hoodie.cleaner.commits.retained": "3"}, opened={"hoodie.clean.commits.retained": "4"})

    assert found == {"hoodie.clean.commits.retained": "3"}


def test_the_old_prefix_of_timestamp_keys_counts_as_the_new() -> None:
    assert canonical_name("hoodie.deltastreamer.keygen.timebased.timezone") == "hoodie.keygen.timebased.timezone"


def test_two_spellings_in_one_place_must_agree() -> None:
    same: dict[str, object] = {"hoodie.cleaner.commits.retained": "3", "hoodie.clean.commits.retained": "3"}
    assert merged(write=same) == {"hoodie.clean.commits.retained": "3"}

    with pytest.raises(Invalid) as error:
        merged(write={**same, "hoodie.clean.commits.retained": "4"})
    assert "option 'hoodie.clean.commits.retained'='4'" in message(error)
    assert "'hoodie.cleaner.commits.retained'='3'" in message(error)


def test_unknown_names_are_refused_in_both_places_of_the_caller_but_not_in_the_table() -> None:
    with pytest.raises(Invalid, match=r"hoodie.no.such"):
        merged(write={"hoodie.no.such": "1"})
    with pytest.raises(Invalid, match=r"hoodie.no.such"):
        merged(opened={"hoodie.no.such": "1"})
    assert merged(table={"hoodie.from.the.future": "1"}) == {"hoodie.from.the.future": "1"}


def test_options_for_the_commit_may_have_any_name() -> None:
    assert merged(write={"_batch": 7}) == {"_batch": "7"}
    own = {"hoodie.datasource.write.commitmeta.key.prefix": "mine."}
    assert merged(write={**own, "mine.batch": "7"})["mine.batch"] == "7"
    with pytest.raises(Invalid, match=r"option '_batch'"):
        merged(write={**own, "_batch": 7})


# what cannot be kept

REFUSED = [
    ("hoodie.index.type", "HBASE", "SIMPLE"),
    (
        "hoodie.write.lock.provider",
        "org.apache.hudi.client.transaction.lock.NoopLockProvider",
        "InProcessLockProvider or FileSystemBasedLockProvider",
    ),
    ("hoodie.clustering.async.enabled", "true", "false"),
    ("hoodie.datasource.clustering.async.enable", "true", "false"),
    (
        "hoodie.clustering.plan.strategy.class",
        "org.apache.hudi.client.clustering.plan.strategy.CommitBasedClusteringPlanStrategy",
        "SparkSizeBasedClusteringPlanStrategy",
    ),
    ("hoodie.datasource.hive_sync.enable", "true", "false"),
    ("hoodie.datasource.meta.sync.enable", "true", "false"),
    ("hoodie.bulkinsert.user.defined.partitioner.class", "a.B", "left out"),
    ("parquet.crypto.factory.class", "a.B", "left out"),
    ("parquet.encryption.footer.key", "k", "left out"),
    ("hoodie.avro.schema.external.transformation", "true", "false"),
    ("hoodie.table.base.file.format", "CSV", "parquet"),
    (
        "hoodie.datasource.write.payload.class",
        "org.apache.hudi.common.model.RewriteAvroPayload",
        "DefaultHoodie",
    ),
    ("hoodie.datasource.write.payload.class", "com.mine.DefaultHoodieRecordPayload", "DefaultHoodie"),
    (
        "hoodie.datasource.write.keygenerator.class",
        "com.example.MyKeyGenerator",
        "SimpleKeyGenerator",
    ),
    ("hoodie.datasource.write.keygenerator.type", "GLOBAL_DELETE", "SIMPLE"),
    ("hoodie.keygen.datetime.parser.class", "com.example.MyParser", "HoodieDateTimeParser"),
    ("hoodie.datasource.write.operation", "compact", "upsert"),
    ("hoodie.static.overwrite.partition.paths", "p1,p2", "left out"),
    (
        "hoodie.write.commit.callback.class",
        "org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback",
        "HoodieWriteCommitHttpCallback",
    ),
    ("hoodie.record.merge.property.x", "1", "left out"),
    ("hoodie.auto.commit", "false", "true"),
]


@pytest.mark.parametrize("name,value,possible", REFUSED)
def test_a_promise_that_cannot_be_kept_is_refused(name: str, value: str, possible: str) -> None:
    with pytest.raises(Unsupported) as error:
        merged(write={name: value})

    assert f"option '{canonical_name(name)}'='{value}': expected" in message(error)
    assert possible in message(error)


def test_a_promise_stored_in_the_table_is_refused_too() -> None:
    with pytest.raises(Unsupported, match=r"'hoodie.index.type'='HBASE'"):
        merged(table={"hoodie.index.type": "HBASE"})


@pytest.mark.parametrize(
    "name,value,nearest",
    [("hoodie.index.type", "SIMPEL", "SIMPLE"), ("hoodie.bulkinsert.sort.mode", "GLOBALSORT", "GLOBAL_SORT")],
)
def test_a_value_that_nobody_knows_is_invalid(name: str, value: str, nearest: str) -> None:
    with pytest.raises(Invalid) as error:
        merged(write={name: value})

    assert f"option '{name}'='{value}': expected one of" in message(error)
    assert f"the nearest is {nearest}" in message(error)


@pytest.mark.parametrize(
    "name,value",
    [
        ("hoodie.index.type", "simple"),
        ("hoodie.bulkinsert.sort.mode", ""),
        ("hoodie.bulkinsert.sort.mode", "partition_path_repartition_and_sort"),
        ("hoodie.datasource.insert.dup.policy", "FAIL"),
        ("hoodie.datasource.write.operation", "insert_overwrite_table"),
        ("hoodie.datasource.write.payload.class", "org.apache.hudi.common.model.EmptyHoodieRecordPayload"),
        ("hoodie.write.commit.callback.class", "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"),
        ("hoodie.compact.inline", "false"),
        ("hoodie.write.lock.provider", ""),
        ("hoodie.datasource.write.payload.class", "org.apache.hudi.common.model.EventTimeAvroPayload"),
        (
            "hoodie.datasource.write.record.merger.impls",
            "org.apache.hudi.DefaultSparkRecordMerger, HoodieAvroRecordMerger",
        ),
        ("hoodie.datasource.query.incremental.format", "cdc"),
    ],
)
def test_what_can_be_kept_passes(name: str, value: str) -> None:
    assert merged(write={name: value}) == {canonical_name(name): value}


# what has no effect


def test_an_option_without_effect_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pyhudi"):
        for _ in range(2):
            merged(
                write={"hoodie.upsert.shuffle.parallelism": 2},
                opened={"hoodie.embed.timeline.server": "true"},
            )

    assert [r.levelno for r in caplog.records] == [logging.INFO, logging.INFO]
    assert any(
        text.startswith("option 'hoodie.embed.timeline.server' has no effect here: there is no timeline server")
        for text in caplog.messages
    )
    assert any("hoodie.upsert.shuffle.parallelism" in text for text in caplog.messages)


def test_settings_facts_reads_and_commit_entries_are_not_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pyhudi"):
        merged(
            write={
                "hoodie.metadata.enable": "true",
                "hoodie.table.name": "t",
                "as.of.instant": "1",
                "_x": "1",
            },
            table={"hoodie.upsert.shuffle.parallelism": "2"},
        )

    assert caplog.records == []


def test_the_log_line_comes_once_a_process_not_once_a_table() -> None:
    script = (
        "import logging; logging.basicConfig(level='INFO')\n"
        "from pyhudi.options.resolve import merge_options\n"
        "given = {'hoodie.markers.delete.parallelism': 1}\n"
        "for _ in range(3): merge_options(write=given, opened=None, table={})"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr

    assert said.count("hoodie.markers.delete.parallelism") == 1


@pytest.mark.parametrize(
    "name,kind",
    [
        ("hoodie.parquet.page.size", Kind.SETTING),
        ("hoodie.table.name", Kind.FACT),
        ("as.of.instant", Kind.READ),
        ("hoodie.datasource.read.file.index.listing.mode", Kind.HARMLESS),
        ("hoodie.auto.commit", Kind.PROMISE),
        ("hoodie.clean.automatic", Kind.SETTING),
        ("hoodie.clean.parallelism", Kind.HARMLESS),
        ("hoodie.clean.failed.writes.policy", Kind.SETTING),
        ("hoodie.hfile.block.cache.size", Kind.HARMLESS),
        ("hoodie.write.lock.zookeeper.url", Kind.SETTING),
        ("hoodie.write.lock.zookeeper.port", Kind.HARMLESS),
        ("hoodie.datasource.hive_sync.mode", Kind.HARMLESS),
    ],
)
def test_every_known_name_has_a_kind(name: str, kind: Kind) -> None:
    assert find_entry(name).kind is kind


# facts

CONTRADICTIONS = [
    ("hoodie.datasource.write.recordkey.field", "uuid", "'id' as its record key"),
    ("hoodie.table.recordkey.fields", "id,city", "'id' as its record key"),
    ("hoodie.datasource.write.recordkey.field", "", "'id' as its record key"),
    ("hoodie.datasource.write.partitionpath.field", "country", "'city' as its partition by"),
    ("hoodie.datasource.write.precombine.field", "at", "'ts' as its ordering"),
    ("hoodie.table.ordering.fields", "ts,at", "'ts' as its ordering"),
    ("hoodie.datasource.write.table.name", "taxis", "'trips' as its name"),
    ("hoodie.database.name", "other", "'' as its database"),
    ("hoodie.datasource.write.table.type", "MERGE_ON_READ", "'COPY_ON_WRITE' as its table type"),
    ("hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.ComplexKeyGenerator", "'SIMPLE'"),
    ("hoodie.table.keygenerator.type", "CUSTOM", "'SIMPLE' as its key generator"),
    ("hoodie.datasource.write.hive_style_partitioning", "true", "'false' as its hive style"),
    ("hoodie.datasource.write.partitionpath.urlencode", "true", "'false' as its url encoded"),
    ("hoodie.datasource.write.drop.partition.columns", "true", "'false' as its drops partition columns"),
    ("hoodie.populate.meta.fields", "false", "'true' as its meta fields"),
    ("hoodie.base.file.format", "orc", "'PARQUET' as its base file format"),
    ("hoodie.write.record.merge.mode", "COMMIT_TIME_ORDERING", "'EVENT_TIME_ORDERING' as its merge mode"),
    ("hoodie.datasource.write.payload.class", "OverwriteWithLatestAvroPayload", "'EVENT_TIME_ORDERING'"),
    (
        "hoodie.write.record.merge.strategy.id",
        "ce9acb64-bde0-424c-9b91-f6ebba25356d",
        "'EVENT_TIME_ORDERING'",
    ),
    ("hoodie.table.cdc.enabled", "true", "'false' as its cdc enabled"),
    ("hoodie.table.cdc.supplemental.logging.mode", "op_key_only", "'DATA_BEFORE_AFTER' as its change mode"),
    ("hoodie.table.timeline.timezone", "LOCAL", "'UTC' as its timezone"),
    ("hoodie.timeline.layout.version", "1", "'2' as its timeline layout"),
]


@pytest.mark.parametrize("name,value,stored", CONTRADICTIONS)
def test_an_option_that_contradicts_the_table_is_invalid(name: str, value: str, stored: str) -> None:
    with pytest.raises(Invalid) as error:
        check_table_facts({name: value}, FACTS)

    assert f"option '{name}'='{value}': table 'trips' has {stored}" in message(error)


@pytest.mark.parametrize(
    "name,value",
    [
        ("hoodie.datasource.write.recordkey.field", " id "),
        ("hoodie.datasource.write.partitionpath.field", "city:SIMPLE"),
        ("hoodie.table.partition.fields", "city:simple"),
        ("hoodie.table.precombine.field", "ts"),
        ("hoodie.table.name", "trips"),
        ("hoodie.datasource.write.table.type", "copy_on_write"),
        ("hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.SimpleAvroKeyGenerator"),
        ("hoodie.datasource.write.keygenerator.type", "SIMPLE_AVRO"),
        ("hoodie.datasource.write.keygenerator.class", ""),
        ("hoodie.datasource.write.hive_style_partitioning", "FALSE"),
        ("hoodie.datasource.write.payload.class", "org.apache.hudi.common.model.DefaultHoodieRecordPayload"),
        ("hoodie.write.record.merge.strategy.id", "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"),
        ("hoodie.write.table.version", "8"),
        ("hoodie.table.base.file.format", "parquet"),
        # Seen: version 6 tables of Apache Hudi 0.15 hold this id under every payload class.
        ("hoodie.compaction.record.merger.strategy", "ce9acb64-bde0-424c-9b91-f6ebba25356d"),
        ("hoodie.parquet.max.file.size", "7"),
    ],
)
def test_an_option_that_repeats_the_table_passes(name: str, value: str) -> None:
    check_table_facts({name: value}, FACTS)


def test_a_write_does_not_upgrade_the_table() -> None:
    with pytest.raises(Unsupported) as error:
        check_table_facts({"hoodie.write.table.version": "9", "hoodie.write.auto.upgrade": "true"}, FACTS)

    assert "option 'hoodie.write.table.version'='9': table 'trips' has version 8" in message(error)
    assert "set it to 8" in message(error)


@pytest.mark.parametrize(
    "name,value,expected",
    [
        ("hoodie.write.table.version", "nine", "a whole number"),
        ("hoodie.write.table.version", "²", "a whole number"),
        ("hoodie.populate.meta.fields", "yes", "true or false"),
    ],
)
def test_a_fact_that_cannot_be_read_is_invalid(name: str, value: str, expected: str) -> None:
    with pytest.raises(Invalid, match=rf"option '{name}'='{value}': expected {expected}"):
        check_table_facts({name: value}, FACTS)


def test_kinds_of_partition_fields_are_two() -> None:
    with pytest.raises(Invalid, match="partition field 'ts:DAILY': expected 'ts', 'ts:SIMPLE' or 'ts:TIMESTAMP'"):
        check_table_facts({"hoodie.datasource.write.partitionpath.field": "ts:DAILY"}, FACTS)


def test_facts_for_a_new_table_are_found_under_any_spelling() -> None:
    given = {
        "hoodie.datasource.write.recordkey.field": "a,b",
        "hoodie.table.precombine.field": "ts",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "",
    }

    assert find_fact(given, Fact.RECORD_KEY) == ("a", "b")
    assert find_fact(given, Fact.ORDERING) == ("ts",)
    assert find_fact(given, Fact.PARTITION_BY) is None
    assert find_fact(given, Fact.NAME) is None


def test_two_spellings_of_a_fact_for_a_new_table_must_agree() -> None:
    with pytest.raises(Invalid) as error:
        find_fact({"hoodie.table.name": "a", "hoodie.datasource.write.table.name": "b"}, Fact.NAME)

    assert "option 'hoodie.datasource.write.table.name'='b': contradicts option 'hoodie.table.name'='a'" in message(
        error
    )


# reading

QUERY_TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"


@pytest.mark.parametrize(
    "given,request_",
    [
        ({}, ReadRequest()),
        ({QUERY_TYPE: "snapshot", "path": "x"}, ReadRequest()),
        (
            {QUERY_TYPE: "read_optimized", "as.of.instant": "2026-11-01"},
            ReadRequest("read_optimized", as_of="2026-11-01"),
        ),
        (
            {"hoodie.datasource.view.type": "incremental", BEGIN: "000"},
            ReadRequest("incremental", start="000"),
        ),
        ({QUERY_TYPE: "incremental", BEGIN: 1, END: 2}, ReadRequest("incremental", start="1", end="2")),
        ({BEGIN: "000"}, ReadRequest()),
        ({"hoodie.metadata.enable": False}, ReadRequest(metadata_enabled=False)),
        ({"hoodie.index.type": "BLOOM", "hoodie.enable.data.skipping": "true"}, ReadRequest()),
        (
            {QUERY_TYPE: "incremental", BEGIN: "000", FALLBACK: True},
            ReadRequest("incremental", start="000", takes_what_is_left=True),
        ),
    ],
)
def test_read_options_become_a_request(given: dict[str, object], request_: ReadRequest) -> None:
    assert read_request_from_options(given) == request_


@pytest.mark.parametrize(
    "given,kind,said",
    [
        ({QUERY_TYPE: "snapshots"}, Invalid, "'snapshots': expected snapshot, read_optimized or incremental"),
        ({QUERY_TYPE: "incremental"}, Invalid, f"'incremental': expected option '{BEGIN}', found none"),
        (
            {QUERY_TYPE: "incremental", BEGIN: "0", "as.of.instant": "1"},
            Invalid,
            "'as.of.instant'='1': expected none",
        ),
        (
            {QUERY_TYPE: "incremental", BEGIN: "0", "hoodie.datasource.query.incremental.format": "changes"},
            Invalid,
            "'changes': expected latest_state or cdc",
        ),
        ({QUERY_TYPE: "cdc"}, Invalid, "expected 'incremental', with option 'hoodie.datasource.query.incremental"),
        ({"hoodie.datasource.read.incr.path.glob": "a/*"}, Unsupported, "'a/*': expected it to be left out"),
        ({"hoodie.datasource.query.typ": "x"}, Invalid, f"nearest known name is '{QUERY_TYPE}'"),
        ({"hoodie.metadata.enable": "maybe"}, Invalid, "'maybe': expected true or false"),
    ],
)
def test_a_read_that_cannot_be_answered_is_refused(given: dict[str, object], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as error:
        read_request_from_options(given)

    assert "option '" in message(error)
    assert said in message(error)
