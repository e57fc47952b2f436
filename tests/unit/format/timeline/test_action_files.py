"""A timeline file could be read wrong, or written so that Apache Hudi reads something else.

Files that Apache Hudi wrote must decode, and encode again to the same bytes but for the sync marker,
which is random in Java. Random values must survive a round trip, random bytes must end in CorruptFile.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.format.avro.container import MAGIC, SYNC_SIZE_BYTES, split_container
from pyhudi.format.avro.schema_files import schema_of
from pyhudi.format.timeline import action_files as c
from pyhudi.format.timeline.records import (
    ActionInstant,
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    ClusteringGroup,
    ClusteringPlan,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    IndexCommitMetadata,
    IndexPlan,
    InstantInfo,
    RequestedReplaceMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RuntimeStats,
    SavepointMetadata,
    ServiceStrategy,
    SliceInfo,
    WriteStat,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "bytes" / "timeline"

PAIRS: dict[type, tuple[Callable[..., object], Callable[..., bytes]]] = {
    CommitMetadata: (c.decode_commit, c.encode_commit_avro),
    RollbackPlan: (c.decode_rollback_plan, c.encode_rollback_plan),
    RollbackMetadata: (c.decode_rollback_metadata, c.encode_rollback_metadata),
    RestorePlan: (c.decode_restore_plan, c.encode_restore_plan),
    RestoreMetadata: (c.decode_restore_metadata, c.encode_restore_metadata),
    CleanerPlan: (c.decode_cleaner_plan, c.encode_cleaner_plan),
    CleanMetadata: (c.decode_clean_metadata, c.encode_clean_metadata),
    SavepointMetadata: (c.decode_savepoint, c.encode_savepoint),
    RequestedReplaceMetadata: (c.decode_requested_replace, c.encode_requested_replace),
    CompactionPlan: (c.decode_compaction_plan, c.encode_compaction_plan),
    IndexPlan: (c.decode_index_plan, c.encode_index_plan),
    IndexCommitMetadata: (c.decode_index_commit, c.encode_index_commit),
}

SAME_BYTES = {
    "commit_v8_h102.avro": CommitMetadata,
    "deltacommit_v8_h102.avro": CommitMetadata,
    "inflight_v8_h102.avro": CommitMetadata,
    "replacecommit_v9_h120.avro": CommitMetadata,
    "replacecommit_requested_v9_h120.avro": RequestedReplaceMetadata,
    "clean_v8_h102.avro": CleanMetadata,
    "rollback_v9_h120.avro": RollbackMetadata,
    "rollback_requested_v9_h120.avro": RollbackPlan,
    "restore_requested_v8_h102.avro": RestorePlan,
    "savepoint_v8_h102.avro": SavepointMetadata,
    "compaction_requested_v8_h102.avro": CompactionPlan,
    "indexing_v8_h102.avro": IndexCommitMetadata,
    "indexing_requested_v8_h102.avro": IndexPlan,
}


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def without_sync(content: bytes) -> bytes:
    return content.replace(content[-SYNC_SIZE_BYTES:], b"")


@pytest.mark.parametrize("name,kind", SAME_BYTES.items())
def test_files_of_hudi_encode_again_to_the_same_bytes(name: str, kind: type) -> None:
    decode, encode = PAIRS[kind]
    content = golden(name)
    again = encode(decode(content, path=name))
    assert without_sync(again) == without_sync(content)
    assert len(again) == len(content)


@pytest.mark.parametrize(
    "name,schema",
    [
        ("clean_requested_v8_h102.header", schema_of("HoodieCleanerPlan")),
        ("restore_v8_h102.header", schema_of("HoodieRestoreMetadata")),
        ("clustering_requested_v9_h120.header", schema_of("HoodieRequestedReplaceMetadata")),
    ],
)
def test_schema_texts_are_those_of_hudi(name: str, schema: str) -> None:
    assert schema.encode() in golden(name)


@pytest.mark.parametrize("name", ["commit_v6_h102.json", "deltacommit_v6_h102.json"])
def test_json_commits_of_1_0_2_encode_again_to_the_same_bytes(name: str) -> None:
    assert c.encode_commit_json(c.decode_commit(golden(name), path=name)) == golden(name)


def test_commits_state_no_version() -> None:
    _, body, _ = split_container(golden("commit_v8_h102.avro"), path="commit")
    _, ours, _ = split_container(c.encode_commit_avro(CommitMetadata()), path="commit")
    operation = bytes.fromhex("02 0c") + b"INSERT"
    assert body.endswith(bytes.fromhex("02") + operation)  # branch 1 of ["int", "null"]
    assert ours.endswith(bytes.fromhex("02 00"))


def test_older_json_commits_decode() -> None:
    replace = c.decode_commit(golden("replacecommit_v6_h0150.json"), path="replace")
    assert replace.operation_type in ("INSERT_OVERWRITE", "DELETE_PARTITION")
    assert replace.partition_to_replace_file_ids
    old = c.decode_commit(golden("commit_v5_h0131.json"), path="old")
    stats = [stat for of_one in old.partition_to_write_stats.values() for stat in of_one]
    assert stats
    assert all(s.prev_commit == "null" and s.num_updates == 0 and not s.is_log for s in stats)
    assert c.decode_commit(c.encode_commit_json(old), path="again") == old


def test_records_without_the_newest_fields_take_their_defaults() -> None:
    clean = c.decode_clean_metadata(golden("clean_v5.avro"), path="clean")
    assert clean.extra_metadata is None
    assert clean.partition_metadata
    plan = c.decode_compaction_plan(golden("compaction_requested_v6_h0150.avro"), path="plan")
    assert plan.missing_schedule_partitions is None
    assert plan.version == 2
    assert len(plan.file_groups) == len(plan.operations or ())


def test_an_empty_file_says_nothing() -> None:
    assert c.decode_commit(b"", path="empty") == CommitMetadata()
    assert c.decode_requested_replace(b"", path="empty") == RequestedReplaceMetadata()


def test_an_insert_overwrite_requests_with_nulls_only() -> None:
    content = c.encode_requested_replace(RequestedReplaceMetadata())
    assert without_sync(content) == without_sync(golden("replacecommit_requested_v9_h120.avro"))


def test_a_stat_of_a_base_file_has_the_defaults_of_hudi() -> None:
    metadata = c.decode_commit(golden("commit_v8_h102.avro"), path="commit")
    stat = metadata.partition_to_write_stats["p1"][0]
    assert stat == WriteStat(
        file_id=stat.file_id,
        path=stat.path,
        num_writes=29,
        num_inserts=29,
        total_write_bytes=20022,
        partition_path="p1",
        file_size_in_bytes=20022,
        runtime_stats=RuntimeStats(total_create_time=67),
    )


def test_equal_values_give_equal_files_and_others_another_sync_marker() -> None:
    one, same, other = (c.encode_commit_avro(CommitMetadata(operation_type=o)) for o in ("INSERT", "INSERT", "UPSERT"))
    assert one == same
    assert one[-SYNC_SIZE_BYTES:] != other[-SYNC_SIZE_BYTES:]


def test_json_is_laid_out_as_jackson_does() -> None:
    metadata = CommitMetadata(extra_metadata={'q"\\': "a\tb\x1f\\u001f é"}, partition_to_replace_file_ids={"p": ()})
    assert c.encode_commit_json(metadata).decode() == (
        '{\n  "partitionToWriteStats" : { },\n  "compacted" : false,\n  "extraMetadata" : {\n'
        '    "q\\"\\\\" : "a\\tb\\u001F\\\\u001f é"\n  },\n  "operationType" : null,\n'
        '  "partitionToReplaceFileIds" : {\n    "p" : [ ]\n  }\n}'
    )


# Refusals.


def test_another_record_is_refused_by_name() -> None:
    with pytest.raises(CorruptFile, match=r"clean at byte 4: expected a record HoodieCleanMetadata, found Hoodie"):
        c.decode_clean_metadata(golden("savepoint_v8_h102.avro"), path="clean")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"partitionToWriteStats" : 7}',
        b'{"partitionToWriteStats" : {"p" : [ {"numWrites" : "many"} ]}}',
        b'{"compacted" : 1}',
        b"[" * 100_000,
    ],
)
def test_json_that_is_no_commit_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        c.decode_commit(content, path="broken")


def test_entries_without_a_value_are_left_out() -> None:
    """HoodieStreamer states the checkpoint of a source that has none as null."""
    stat = '"fileId" : "f", "cdcStats" : {"a" : 1, "b" : null}'
    extra = '"schema" : "s", "deltastreamer.checkpoint.key" : null'
    text = f'{{"partitionToWriteStats" : {{"p" : [ {{{stat}}} ]}}, "extraMetadata" : {{{extra}}}}}'
    commit = c.decode_commit(text.encode(), path="commit")
    assert commit.extra_metadata == {"schema": "s"}
    assert commit.partition_to_write_stats["p"][0].cdc_stats == {"a": 1}
    assert c.decode_commit(c.encode_commit_avro(commit), path="avro").extra_metadata == {"schema": "s"}


@pytest.mark.parametrize("stats", ["null", "[ null ]"])
def test_files_of_a_partition_that_are_null_are_refused(stats: str) -> None:
    """They would be files that a reader passes over."""
    with pytest.raises(CorruptFile, match=r"partitionToWriteStats: p: .*, found None"):
        c.decode_commit(f'{{"partitionToWriteStats" : {{"p" : {stats}}}}}'.encode(), path="broken")


def test_a_misfit_names_its_field() -> None:
    with pytest.raises(CorruptFile, match=r"partitionToWriteStats: p: \[0\]: numWrites: expected a value of type int"):
        c.decode_commit(b'{"partitionToWriteStats" : {"p" : [ {"numWrites" : true} ]}}', path="broken")


def test_a_file_cut_short_anywhere_is_refused() -> None:
    content = golden("rollback_requested_v9_h120.avro")
    for size in range(len(content)):
        with pytest.raises(CorruptFile):
            c.decode_rollback_plan(content[:size], path="cut")


def test_a_second_block_is_refused() -> None:
    with pytest.raises(CorruptFile, match="one block with one record"):
        c.decode_savepoint(golden("savepoint_v8_h102.avro") + b"\x02", path="longer")


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_refused(noise: bytes, has_magic: bool) -> None:
    content = MAGIC + noise if has_magic else b"\x00" + noise
    with pytest.raises(CorruptFile):
        c.decode_commit(content, path="noise")


@given(st.data())
def test_a_flipped_byte_decodes_or_is_refused(data: st.DataObject) -> None:
    content = bytearray(golden("commit_v8_h102.avro"))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptFile):
        c.decode_commit(bytes(content), path="flipped")


# Round trips.

texts = st.text(st.characters(codec="utf-8"), max_size=8)
longs = st.integers(-(2**63), 2**63 - 1)
ints = st.integers(-(2**31), 2**31 - 1)
counts = st.integers(0, 2**63 - 1)
many = st.lists(texts, max_size=3).map(tuple)
pairs = st.dictionaries(texts, texts, max_size=3)
sizes = st.dictionaries(texts, longs, max_size=3)
maybe = st.none()


def values_of(kind: type, **chosen: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Values of a model class: by declared type, but for the fields given."""
    assert is_dataclass(kind)
    by_hint: dict[object, st.SearchStrategy[object]] = {
        str: texts, int: ints, bool: st.booleans(), str | None: maybe | texts, int | None: maybe | ints,
        bool | None: maybe | st.booleans(), tuple[str, ...]: many, tuple[str, ...] | None: maybe | many,
    }  # fmt: skip
    hints = get_type_hints(kind)
    return st.builds(
        kind, **{f.name: chosen[f.name] if f.name in chosen else by_hint[hints[f.name]] for f in fields(kind)}
    )


def listed(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(values, max_size=2).map(tuple)


def mapped(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.dictionaries(texts, values, max_size=2)


stats = values_of(
    WriteStat,
    cdc_stats=maybe | sizes,
    runtime_stats=maybe | values_of(RuntimeStats),
    file_size_in_bytes=longs,
)
commits = values_of(
    CommitMetadata,
    partition_to_write_stats=mapped(listed(stats)),
    extra_metadata=pairs,
    partition_to_replace_file_ids=maybe | mapped(many),
)
instants = values_of(InstantInfo)
rollbacks = values_of(
    RollbackMetadata,
    time_taken_in_millis=longs,
    partition_metadata=mapped(
        values_of(
            RollbackPartitionMetadata,
            rollback_log_files=maybe | sizes,
            log_files_from_failed_commit=maybe | sizes,
        )
    ),
    instants_rollback=listed(instants),
)
plans = values_of(
    CleanerPlan,
    earliest_instant_to_retain=maybe | values_of(ActionInstant),
    files_to_be_deleted_per_partition=maybe | mapped(many),
    file_paths_to_be_deleted_per_partition=maybe | mapped(listed(values_of(CleanFileInfo))),
    extra_metadata=maybe | pairs,
)
metrics = maybe | st.dictionaries(texts, st.floats(allow_nan=False), max_size=2)
strategies = values_of(ServiceStrategy, strategy_params=maybe | pairs)
replaces = values_of(
    RequestedReplaceMetadata,
    clustering_plan=maybe
    | values_of(
        ClusteringPlan,
        input_groups=maybe
        | listed(
            values_of(
                ClusteringGroup,
                slices=listed(values_of(SliceInfo)),
                metrics=metrics,
                extra_metadata=maybe | pairs,
            )
        ),
        strategy=maybe | strategies,
        extra_metadata=maybe | pairs,
    ),
    extra_metadata=maybe | pairs,
)
compactions = values_of(
    CompactionPlan,
    operations=maybe | listed(values_of(CompactionOperation, metrics=metrics)),
    extra_metadata=maybe | pairs,
    strategy=maybe | strategies,
)


@given(st.one_of(commits, rollbacks, plans, replaces, compactions))
def test_values_survive_avro(value: object) -> None:
    decode, encode = PAIRS[type(value)]
    content = encode(value)
    assert decode(content, path="round") == value
    assert encode(value) == content


@given(commits)
def test_json_is_stable_after_one_round(metadata: CommitMetadata) -> None:
    """Counters that are None become 0, as Java has it; nothing changes after that."""
    once = c.decode_commit(c.encode_commit_json(metadata), path="once")
    assert c.decode_commit(c.encode_commit_json(once), path="twice") == once
    assert once.extra_metadata == metadata.extra_metadata
    assert once.partition_to_replace_file_ids == metadata.partition_to_replace_file_ids
    assert once.partition_to_write_stats.keys() == metadata.partition_to_write_stats.keys()


def test_clustering_and_compaction_plans_name_their_file_groups() -> None:
    one = SliceInfo("a.parquet", (), "f1", "p")
    plan = RequestedReplaceMetadata("CLUSTER", ClusteringPlan((ClusteringGroup((one,)), ClusteringGroup())))
    assert plan.file_groups == (("p", "f1"),)
    assert RequestedReplaceMetadata().input_groups == ()
    operation = CompactionOperation("1", (), None, "f2", None)
    assert CompactionPlan((operation,)).file_groups == (("", "f2"),)
