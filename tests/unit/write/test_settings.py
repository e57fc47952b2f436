"""A setting could be read from the wrong option, keep a wrong default, or take a bad value for a good one.

Every option is set to something else and must arrive in its field; every bad value must be refused by name.
"""

from dataclasses import fields

import pytest

from pyhudi.errors import Invalid
from pyhudi.metadata.kinds.settings import ChosenColumns, IndexSettings, WantedExpression
from pyhudi.options.entries import Kind
from pyhudi.options.names import check_known
from pyhudi.options.verdicts import find_entry
from pyhudi.write.input.key_settings import LOGICAL_TIMESTAMP, KeySettings
from pyhudi.write.log_settings import LogSettings
from pyhudi.write.orc_settings import OrcSettings
from pyhudi.write.settings import WriteSettings

NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
WRITES_FIRST = "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"
ALLOWING = "SparkAllowUpdateStrategy"
BY_FILE_GROUP = "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy"

EACH = [
    ("operation", "hoodie.datasource.write.operation", "BULK_INSERT", "bulk_insert"),
    ("compression", "hoodie.parquet.compression.codec", "SNAPPY", "snappy"),
    ("file_size_max_bytes", "hoodie.parquet.max.file.size", "1000", 1000),
    ("small_file_limit_bytes", "hoodie.parquet.small.file.limit", "0", 0),
    ("row_group_size_bytes", "hoodie.parquet.block.size", "2000", 2000),
    ("page_size_bytes", "hoodie.parquet.page.size", "3000", 3000),
    ("record_size_estimate_bytes", "hoodie.copyonwrite.record.size.estimate", "77", 77),
    ("bloom_enabled", "hoodie.parquet.bloom.filter.enabled", "False", False),
    ("bloom_kind", "hoodie.bloom.index.filter.type", "simple", "SIMPLE"),
    ("bloom_entries", "hoodie.index.bloom.num_entries", "10", 10),
    ("bloom_false_positive_rate", "hoodie.index.bloom.fpp", "0.000000001", 1e-9),
    ("bloom_entries_max", "hoodie.bloom.index.filter.dynamic.max.entries", "20", 20),
    ("combine_before_insert", "hoodie.combine.before.insert", "true", True),
    ("combine_before_upsert", "hoodie.combine.before.upsert", "false", False),
    ("keeps_doubled_inserts", "hoodie.merge.allow.duplicate.on.inserts", "false", False),
    ("combine_before_delete", "hoodie.combine.before.delete", "false", False),
    ("insert_duplicates", "hoodie.datasource.insert.dup.policy", "fail", "fail"),
    ("insert_duplicates", "hoodie.datasource.write.insert.drop.duplicates", "true", "drop"),
    ("index_type", "hoodie.index.type", "simple", "SIMPLE"),
    ("index_type", "hoodie.index.type", "global_bloom", "GLOBAL_BLOOM"),
    ("index_type", "hoodie.index.type", "bucket", "BUCKET"),
    ("index_class", "hoodie.index.class", "acme.index.Locations", "acme.index.Locations"),
    *(
        ("bucket_options", option, text, {option: text})
        for option, text in (
            ("hoodie.bucket.index.num.buckets", "4"),
            ("hoodie.bucket.index.hash.field", "id"),
            ("hoodie.index.bucket.engine", "SIMPLE"),
        )
    ),
    ("bloom_prunes_by_range", "hoodie.bloom.index.prune.by.ranges", "false", False),
    ("bloom_uses_metadata", "hoodie.bloom.index.use.metadata", "true", True),
    ("updates_partition_path", "hoodie.simple.index.update.partition.path", "false", False),
    ("fallback_updates_partition_path", "hoodie.simple.index.update.partition.path", "false", False),
    ("bulk_insert_sort_mode", "hoodie.bulkinsert.sort.mode", "", "NONE"),
    ("bulk_insert_sort_mode", "hoodie.bulkinsert.sort.mode", "partition_sort", "PARTITION_SORT"),
    ("operation", "hoodie.datasource.write.operation", "INSERT_OVERWRITE", "insert_overwrite"),
    ("metadata_enabled", "hoodie.metadata.enable", "false", False),
    ("metadata_deltacommits_max", "hoodie.metadata.compact.max.delta.commits", "3", 3),
    ("metadata_log_blocks_min", "hoodie.metadata.log.compaction.enable", "true", 5),
    ("allow_empty_commit", "hoodie.allow.empty.commit", "false", False),
    ("fills_missing_columns", "hoodie.write.set.null.for.missing.columns", "true", True),
    ("fills_missing_columns", "hoodie.datasource.write.reconcile.schema", "true", True),
    ("drops_missing_columns", "hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "true", True),
    ("makes_new_columns_nullable", "hoodie.datasource.write.new.columns.nullable", "true", True),
    ("commit_metadata_prefix", "hoodie.datasource.write.commitmeta.key.prefix", "my.", "my."),
    (
        "keys",
        LOGICAL_TIMESTAMP,
        "true",
        KeySettings(has_logical_timestamps=True, stated=((LOGICAL_TIMESTAMP, "true"),)),
    ),
    ("logs", "hoodie.logfile.data.block.format", "AVRO", LogSettings(block_format="avro")),
    ("logs", "hoodie.logfile.max.size", "9", LogSettings(file_size_max_bytes=9)),
    ("logs", "hoodie.logfile.data.block.max.size", "8", LogSettings(block_size_max_bytes=8)),
    ("logs", "hoodie.write.record.positions", "false", LogSettings(writes_positions=False)),
    ("logs", "hoodie.merge.small.file.group.candidates.limit", "0", LogSettings(small_groups_max=0)),
    ("heartbeat_interval_ms", "hoodie.client.heartbeat.interval_in_ms", "500", 500),
    ("heartbeat_misses", "hoodie.client.heartbeat.tolerable.misses", "0", 0),
    ("lock_wait_ms", "hoodie.write.lock.wait_time_ms", "0", 0),
    ("conflict_strategy", "hoodie.write.lock.conflict.resolution.strategy", BY_FILE_GROUP, BY_FILE_GROUP),
    ("conflict_strategy", "hoodie.write.lock.conflict.resolution.strategy", WRITES_FIRST, WRITES_FIRST),
    ("concurrency_mode", "hoodie.write.concurrency.mode", NON_BLOCKING, NON_BLOCKING),
    ("detects_conflicts_early", "hoodie.write.concurrency.early.conflict.detection.enable", "true", True),
    *(
        ("clustering_updates", "hoodie.clustering.updates.strategy", f"{package}{ALLOWING}", ALLOWING)
        for package in ("", "org.apache.hudi.client.clustering.update.strategy.")
    ),
    ("ends_clusterings", "hoodie.clustering.rollback.pending.replacecommit.on.conflict", "true", True),
    ("conflict_retries", "hoodie.write.num.retries.on.conflict.failures", "7", 7),
    *(
        ("indexes", f"hoodie.metadata.{option}", text, IndexSettings(**field))
        for option, text, field in (
            ("index.column.stats.enable", "true", {"column_stats": True}),
            ("index.partition.stats.enable", "false", {"partition_stats": False}),
            ("index.bloom.filter.enable", "true", {"bloom_filters": True}),
            ("global.record.level.index.enable", "true", {"global_record_index": True}),
            ("record.level.index.enable", "true", {"partitioned_record_index": True}),
            ("index.secondary.enable", "false", {"secondary": False}),
            ("index.secondary.column", "a, b", {"secondary_columns": ("a", "b")}),
            ("index.column.stats.column.list", "a", {"columns": ChosenColumns(("a",))}),
            ("index.column.stats.max.columns.to.index", "5", {"columns": ChosenColumns(count_max=5)}),
            ("index.column.stats.file.group.count", "3", {"column_stats_groups": 3}),
            ("index.partition.stats.file.group.count", "3", {"partition_stats_groups": 3}),
            ("index.bloom.filter.file.group.count", "3", {"bloom_filter_groups": 3}),
            ("global.record.level.index.min.filegroup.count", "3", {"global_groups": (3, 10_000)}),
            ("record.level.index.max.filegroup.count", "3", {"partitioned_groups": (1, 3)}),
            ("record.index.growth.factor", "3", {"growth_factor": 3.0}),
            ("record.index.max.filegroup.size", "300", {"group_size_bytes": 300}),
        )
    ),
    ("orc", "hoodie.orc.compression.codec", "zstd", OrcSettings(compression="ZSTD")),
    ("orc", "hoodie.orc.stripe.size", "3000", OrcSettings(stripe_size_bytes=3_000)),
    ("indexes", "hoodie.index.name", "by_v", IndexSettings(secondary_name="by_v")),
]


@pytest.mark.parametrize("field,option,text,value", EACH)
def test_an_option_arrives_in_its_field_and_nowhere_else(field: str, option: str, text: str, value: object) -> None:
    check_known(option)
    settings, default = WriteSettings.from_options({option: text}), WriteSettings()

    assert getattr(settings, field) == value
    also = {"bucket_options"}  # as they are given
    if option == "hoodie.simple.index.update.partition.path":
        also |= {"updates_partition_path", "fallback_updates_partition_path"}
    others = [f.name for f in fields(settings) if f.name not in {field, *also}]
    assert all(getattr(settings, name) == getattr(default, name) for name in others)


def test_each_index_has_its_own_switch_for_moves() -> None:
    off = {"hoodie.simple.index.update.partition.path": "false"}
    for index, moves in (("GLOBAL_SIMPLE", False), ("SIMPLE", False), ("GLOBAL_BLOOM", True), ("BLOOM", True)):
        settings = WriteSettings.from_options({"hoodie.index.type": index, **off})
        assert settings.updates_partition_path is moves
        assert settings.has_global_index is index.startswith("GLOBAL")
    for index in ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"):
        settings = WriteSettings.from_options({"hoodie.index.type": index})
        assert (settings.updates_partition_path, settings.fallback_updates_partition_path) == (False, True)
        assert settings.has_global_index is (index != "RECORD_LEVEL_INDEX")
        on = {"hoodie.index.type": index, "hoodie.record.index.update.partition.path": "true"}
        assert WriteSettings.from_options(on).updates_partition_path


def test_every_field_has_an_option_and_every_option_is_a_setting() -> None:
    others = {"lock"}  # the caller's options say it, which are not those of the table: tests/unit/txn/locks/providers
    assert {f.name for f in fields(WriteSettings)} == {field for field, *_ in EACH} | others
    assert {find_entry(option).kind for _, option, *_ in EACH} == {Kind.SETTING}


def test_the_defaults_are_apache_hudis_but_for_the_codec_and_the_size_of_filters() -> None:
    settings = WriteSettings.from_options({"hoodie.table.name": "t"})

    assert settings == WriteSettings()
    assert settings.compression == "zstd"
    assert (settings.file_size_max_bytes, settings.small_file_limit_bytes) == (125829120, 104857600)
    assert (settings.bloom_entries, settings.bloom_false_positive_rate) == (None, 1e-9)
    assert (settings.combine_before_insert, settings.combine_before_upsert) == (False, True)
    assert (settings.metadata_enabled, settings.metadata_deltacommits_max) == (True, 10)


def test_what_belongs_to_a_switch_counts_where_it_is_on() -> None:
    blocks = {"hoodie.metadata.log.compaction.blocks.threshold": "3"}
    assert WriteSettings.from_options(blocks).metadata_log_blocks_min is None
    on = {**blocks, "hoodie.metadata.log.compaction.enable": "true"}
    assert WriteSettings.from_options(on).metadata_log_blocks_min == 3
    name = "hoodie.metadata.index.expression"
    of_column = {f"{name}.column": "c", f"{name}.options": "expr='trim', trimString = a=b"}
    assert WriteSettings.from_options(of_column).indexes.expression is None
    found = WriteSettings.from_options({**of_column, f"{name}.enable": "true"}).indexes.expression
    assert found == WantedExpression("c", "trim", {"trimString": "a=b"}, "column_stats")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "lz4"])
def test_codecs_keep_their_names(codec: str) -> None:
    assert WriteSettings.from_options({"hoodie.parquet.compression.codec": codec}).compression == codec


def test_uncompressed_is_spelled_as_pyarrow_does() -> None:
    assert WriteSettings.from_options({"hoodie.parquet.compression.codec": "UNCOMPRESSED"}).compression == "none"


@pytest.mark.parametrize("option", sorted({option for _, option, *_ in EACH}))
def test_an_empty_text_is_the_default_but_for_the_prefix(option: str) -> None:
    settings = WriteSettings.from_options({option: ""})

    if option.endswith("commitmeta.key.prefix"):
        assert settings.commit_metadata({"_a": "1"}) == {}
    else:
        assert settings == WriteSettings()


@pytest.mark.parametrize(
    "option,text,expected",
    [
        (
            "hoodie.datasource.write.operation",
            "merge",
            "upsert or insert or bulk_insert or delete or insert_overwrite or insert_overwrite_table or "
            "delete_partition",
        ),
        ("hoodie.parquet.compression.codec", "lzo", "zstd or gzip or snappy or lz4 or uncompressed"),
        ("hoodie.parquet.max.file.size", "0", "a whole number of at least 1"),
        ("hoodie.parquet.max.file.size", "120MB", "a whole number of at least 1"),
        ("hoodie.parquet.small.file.limit", "-1", "a whole number of at least 0"),
        ("hoodie.client.heartbeat.interval_in_ms", "٣", "a whole number of at least 1"),
        ("hoodie.index.bloom.fpp", "1", "a number between 0 and 1, both excluded"),
        ("hoodie.index.bloom.fpp", "nan", "a number between 0 and 1, both excluded"),
        ("hoodie.index.bloom.fpp", "small", "a number between 0 and 1, both excluded"),
        ("hoodie.bloom.index.filter.type", "DYNAMIC", "DYNAMIC_V0 or SIMPLE"),
        ("hoodie.combine.before.upsert", "yes", "true or false"),
        ("hoodie.datasource.insert.dup.policy", "ignore", "none or drop or fail"),
        (
            "hoodie.index.type",
            "HBASE",
            "SIMPLE or BLOOM or GLOBAL_SIMPLE or GLOBAL_BLOOM or RECORD_INDEX or "
            "GLOBAL_RECORD_LEVEL_INDEX or RECORD_LEVEL_INDEX or BUCKET",
        ),
        (
            "hoodie.bulkinsert.sort.mode",
            "SORT",
            "NONE or GLOBAL_SORT or PARTITION_SORT or PARTITION_PATH_REPARTITION or "
            "PARTITION_PATH_REPARTITION_AND_SORT",
        ),
    ],
)
def test_a_bad_value_is_refused_by_name(option: str, text: str, expected: str) -> None:
    with pytest.raises(Invalid) as error:
        WriteSettings.from_options({option: text})

    assert str(error.value) == f"option '{option}'='{text}': expected {expected}"


def test_dropping_and_failing_on_duplicates_contradict() -> None:
    flag, policy = "hoodie.datasource.write.insert.drop.duplicates", "hoodie.datasource.insert.dup.policy"

    with pytest.raises(Invalid, match=f"option '{flag}'='true': contradicts option '{policy}'='fail'"):
        WriteSettings.from_options({flag: "true", policy: "fail"})
    assert WriteSettings.from_options({flag: "false", policy: "fail"}).insert_duplicates == "fail"


def test_options_with_the_prefix_go_into_the_commit() -> None:
    options = {"_batch": "7", "hoodie.table.name": "t", "my.x": "1"}

    assert WriteSettings().commit_metadata(options) == {"_batch": "7"}
    assert WriteSettings(commit_metadata_prefix="my.").commit_metadata(options) == {"my.x": "1"}


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.metadata.index.column.stats.file.group.count",
        "hoodie.metadata.index.partition.stats.file.group.count",
        "hoodie.metadata.index.bloom.filter.file.group.count",
        "hoodie.metadata.index.expression.file.group.count",
        "hoodie.metadata.global.record.level.index.min.filegroup.count",
        "hoodie.metadata.record.level.index.max.filegroup.count",
    ],
)
def test_numbers_that_make_files_have_a_bound(name: str) -> None:
    """The table's properties may hold them."""
    with pytest.raises(Invalid, match=f"{name}.*at most 10,000"):
        IndexSettings.from_options({name: "10001"})
