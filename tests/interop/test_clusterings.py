"""A clustering replaces every file group that it takes. A row that the new files lack is lost for good; one that the
old file groups still show is there twice. Apache Hudi carries out the plans of pyhudi and pyhudi those of Apache Hudi,
each reads what the other clustered, and both write on; rows before and after must be the same, to both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyhudi.errors import Conflict
from pyhudi.format.timeline.action_files import decode_requested_replace
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import ClusteringGroup, ClusteringPlan, RequestedReplaceMetadata, SliceInfo
from pyhudi.table.view.commits import read_commit
from tests.interop.cow_rows import META_BUT_TIME, key_range, rows
from tests.interop.cow_tables import Shared, next_ms
from tests.interop.mor_tables import SharedLogs
from tests.interop.test_cow_tables import BEGIN, END, INCREMENTAL
from tests.interop.test_ten_turns import STAYS
from tests.interop.test_version_6 import EVENT_TIME
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

SORT = "hoodie.clustering.plan.strategy.sort.columns"
BY_NUMBER = {SORT: "number"}
SPLIT = {**BY_NUMBER, "hoodie.clustering.plan.strategy.target.file.max.bytes": 20_000}

BY_RECORDS = {"hoodie.datasource.write.row.writer.enable": False}
"""Otherwise 1.0.2 and 0.15.0 cluster by rows of Spark, and then fail to update the files that they wrote themselves:
"Index -1 out of bounds" from Parquet, and "Cannot encode decimal with precision 12"."""

RELEASES = pytest.mark.parametrize(
    "name, version, options",
    [
        ("hudi_102", 8, {}),
        ("hudi_120", 9, {}),
        ("hudi_0150", 6, EVENT_TIME),
        pytest.param("hudi_120", 6, {**STAYS, **EVENT_TIME, "hoodie.write.table.version": 6}, marks=pytest.mark.long),
        pytest.param("hudi_120", 8, STAYS, marks=pytest.mark.long),
    ],
    ids=["1.0.2 on version 8", "1.2.0 on version 9", "0.15.0 on version 6", "1.2.0 on version 6", "1.2.0 on version 8"],
)
KINDS = pytest.mark.parametrize("kind", [Shared, SharedLogs], ids=["copy on write", "merge on read"])


def a_table(path: Path, kind: type[Shared], version: int) -> Shared:
    """Several small file groups in each partition, where there are logs some with logs."""
    shared = kind(path, version=version)
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.bulk_insert(rows(key_range(120, 200), turn=2))
    shared.upsert(rows(key_range(60, 180, 7), turn=3))
    shared.delete(sorted(shared.model.rows)[5::23])
    return shared


def clusterings(shared: Shared) -> list[str]:
    """The requested times of the completed clusterings."""
    snapshot = shared.ours._access.snapshot()
    done = [i for i in snapshot.timeline if i.action == "replacecommit" and i.is_completed]
    found = ((i, read_commit(snapshot.storage, snapshot.timeline, i)) for i in done)
    return [i.requested for i, metadata in found if metadata.operation_type == "CLUSTER"]


def pending(shared: Shared) -> list[str]:
    return [i.requested for i in shared.ours.timeline() if i.completed is None]


def plan_of(shared: Shared, requested: str) -> RequestedReplaceMetadata:
    snapshot = shared.ours._access.snapshot()
    action = snapshot.config.layout.kind.clustering
    path = snapshot.timeline.layout.path(Instant(requested, action, "REQUESTED"))
    return decode_requested_replace(snapshot.storage.get(path), path=path)


def call(hudi: ReferenceHudi, shared: Shared, operation: str, **options: Any) -> None:
    """Schedule or execute clusterings by Apache Hudi's procedure."""
    texts = ",".join(f"{key}={str(value).lower()}" for key, value in {**BY_RECORDS, **options}.items())
    with_options = f", options => '{texts}'" if texts else ""
    hudi.sql(f"CALL run_clustering(op => '{operation}', path => '{shared.path}'{with_options})")


def both_write_on(shared: Shared, hudi: ReferenceHudi, turn: int, options: dict[str, Any]) -> None:
    """Updates and deletes of rows that were clustered, and new rows, by both."""
    shared.hudi_write(hudi, "upsert", rows(key_range(turn, 210, 9), turn=turn), **options)
    shared.upsert(rows(key_range(1, 220, 11), turn=turn + 1))
    shared.hudi_delete(hudi, sorted(shared.model.rows)[turn % 7 :: 31], **options)
    shared.delete(sorted(shared.model.rows)[3::37])
    shared.check(hudi)
    assert shared.ours.metadata.validate().differences == ()


@KINDS
@RELEASES
def test_each_carries_out_what_the_other_planned(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any], kind: type[Shared]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = a_table(tmp_path / "rides", kind, version)

    planned = shared.ours.schedule_clustering(options=SPLIT).requested
    assert pending(shared) == [planned]
    shared.check(hudi)
    with pytest.raises(Conflict, match=f"is being clustered by '{planned}'"):
        shared.upsert(rows(key_range(0, 9), turn=9))
    call(hudi, shared, "execute", **options)
    assert clusterings(shared) == [planned]
    shared.check(hudi)
    both_write_on(shared, hudi, 10, options)

    call(hudi, shared, "schedule", **options, **SPLIT)
    (theirs,) = pending(shared)
    shared.check(hudi)
    result = shared.ours.run_clusterings(options=SPLIT)
    assert (result.requested, result.given_up) == (theirs, ())
    assert clusterings(shared) == [planned, theirs]
    shared.check(hudi)
    both_write_on(shared, hudi, 20, options)


@KINDS
@RELEASES
def test_the_plans_of_both_say_the_same(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any], kind: type[Shared]
) -> None:
    """Of one table, but for the order of slices that are equally large."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = a_table(tmp_path / "rides", kind, version)
    plans = []
    for number in range(2):
        if number:
            call(hudi, shared, "schedule", **options, **SPLIT)
        else:
            shared.ours.schedule_clustering(options=SPLIT)
        (requested,) = pending(shared)
        plans.append(plan_of(shared, requested))
        shared.ours.rollback(requested)

    ours, theirs = plans
    assert (ours.operation_type, ours.extra_metadata) == (theirs.operation_type, theirs.extra_metadata)
    mine, other = ours.clustering_plan, theirs.clustering_plan
    assert mine is not None
    assert other is not None
    assert (mine.strategy, mine.extra_metadata) == (other.strategy, other.extra_metadata)
    assert mine.preserve_hoodie_metadata is other.preserve_hoodie_metadata is True
    assert bundles(mine) == bundles(other)


def bundles(plan: ClusteringPlan) -> list[object]:
    """What a plan says of each group, without the order in which its slices stand."""
    groups = sorted(plan.input_groups or (), key=lambda group: group.slices[0].partition_path or "")
    return [(_slices(group), group.num_output_file_groups, set(group.metrics or {})) for group in groups]


def _slices(group: ClusteringGroup) -> set[SliceInfo]:
    """The slices, but for what may differ. Paths have no scheme where Apache Hudi lists by the metadata table.

    Our plans name logs in the order in which they are merged.
    """

    def bare(path: str) -> str:
        return path.removeprefix("file:")

    return {
        replace(
            one,
            data_file_path=bare(one.data_file_path or ""),
            delta_file_paths=tuple(sorted(map(bare, one.delta_file_paths or ()))),
        )
        for one in group.slices
    }


@KINDS
@RELEASES
def test_hudi_reads_what_we_clustered_by_every_query(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any], kind: type[Shared]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = a_table(tmp_path / "rides", kind, version)
    before = max(shared.model.past)
    curve = {**SPLIT, SORT: "number,ts", "hoodie.layout.optimize.strategy": "hilbert"}
    result = shared.ours.cluster(options=curve)
    assert result.requested is not None
    assert result.completed is not None
    shared.check(hudi)

    for requested in (before, result.requested):
        then = shared.ours.scan(as_of=requested).to_arrow()
        assert_same_rows(then, shared.model.table(before), ignore_columns=META_BUT_TIME)
        assert_same_rows(hudi.read(shared.path, **{"as.of.instant": requested}), then)

    # Nothing is new after the clustering; what is new since the beginning is what there is.
    start = before if version == 6 else shared.completed(before)
    end = result.requested if version == 6 else result.completed
    assert shared.ours.incremental(start, end).to_arrow().num_rows == 0
    begin = start if version == 6 else next_ms(start)
    assert hudi.read(shared.path, **INCREMENTAL, **{BEGIN: begin, END: end}).num_rows == 0
    everything = shared.ours.incremental().to_arrow()
    assert_same_rows(everything, shared.ours.scan().to_arrow())
    assert_same_rows(hudi.read(shared.path, **INCREMENTAL, **{BEGIN: "000", END: end}), everything)
    both_write_on(shared, hudi, 10, options)

    # Theirs, inline, upon ours; then ours upon theirs. Our compaction comes first for two of them: in a clustering of
    # 0.15.0 rows come back that a log deletes, and one of 1.0.2 cannot read what a compaction of 1.0.2 wrote, lists
    # beside short decimals ("Index -1 out of bounds", or with `writelegacyformat` off "FieldFixedConverter").
    if kind is SharedLogs and name in ("hudi_0150", "hudi_102"):
        assert shared.ours.compact().requested is not None
    inline = {
        "hoodie.clustering.inline": True,
        "hoodie.clustering.inline.max.commits": 1,
        **SPLIT,
        **BY_RECORDS,
        **options,
    }
    shared.hudi_write(hudi, "upsert", rows(key_range(3, 200, 13), turn=30), **inline)
    assert len(clusterings(shared)) == 2
    shared.check(hudi)
    assert shared.ours.cluster(options=BY_NUMBER).requested is not None
    both_write_on(shared, hudi, 40, options)
