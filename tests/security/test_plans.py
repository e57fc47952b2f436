"""Plans, markers and commits name files: made-up ones could have files outside the table deleted or read.

Each test puts one on the timeline that nobody has carried out yet, calls what carries it out, and looks at a
neighbour, who has files of the very same names, and at the table's own properties.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable
from pyhudi.format.timeline import action_files as c
from pyhudi.format.timeline.records import (
    CleanerPlan,
    CleanFileInfo,
    ClusteringGroup,
    ClusteringPlan,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    InstantInfo,
    RequestedReplaceMetadata,
    RestorePlan,
    RollbackPlan,
    RollbackRequest,
    SliceInfo,
)

PLACES = {
    "parents": "../neighbour/oslo",
    "parents within": "oslo/../../neighbour/oslo",
    "absolute": "{neighbour}/oslo",
    "a URL": "file://{neighbour}/oslo",
    "NUL": "oslo\0/../../neighbour/oslo",
    "itself": "oslo/.",
    "the table's own": ".hoodie",
    "nothing": "",
    "digits": "9" * 5_000,
}


OFTEN = ("parents", "a URL", "NUL", "the table's own", "nothing")
EACH = [place if place in OFTEN else pytest.param(place, marks=pytest.mark.long) for place in PLACES]


def rows(*keys: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "city": ["oslo"] * len(keys), "ts": [ts] * len(keys)})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of base files and logs, and a neighbour of the same content; tests copy both."""
    folder = tmp_path_factory.mktemp("made")
    table = HudiTable.create(
        folder / "t", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.bulk_insert(rows("a", "b"))
    table.upsert(rows("a", ts=2))
    shutil.copytree(folder / "t", folder / "neighbour")
    return folder


@pytest.fixture
def world(made: Path, tmp_path: Path) -> Iterator[Path]:
    """The table at `t`. Whatever a test does, the neighbour and the table's properties are as they were."""
    world = tmp_path / "world"
    shutil.copytree(made, world)
    before = contents(world / "neighbour")

    yield world

    assert contents(world / "neighbour") == before
    assert sorted(path.name for path in world.iterdir()) == ["neighbour", "t"]
    assert HudiTable.open(world / "t").name == "t"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(world: Path) -> tuple[str, str]:
    """Of a base file and a log, which both tables have."""
    (base,), (log,) = (world / "neighbour/oslo").glob("*.parquet"), (world / "neighbour/oslo").glob(".*.log.*")
    return base.name, log.name


def put(world: Path, name: str, content: bytes) -> None:
    (world / "t/.hoodie/timeline" / name).write_bytes(content)


def attempt(world: Path, *calls: Callable[[HudiTable], object]) -> list[str]:
    """What each call said: the name of its error, "" where it succeeded. Anything but a HudiError is a failure."""
    said = []
    for call in calls:
        try:
            call(HudiTable.open(world / "t"))
            said.append("")
        except HudiError as error:
            said.append(type(error).__name__)
    assert "Bug" not in said
    return said


def everything(world: Path) -> list[str]:
    return attempt(
        world,
        lambda t: t.scan().to_arrow(),
        lambda t: t.incremental("20200101").to_arrow(),
        lambda t: t.upsert(rows("a", "z", ts=9)),
        lambda t: t.compact(),
        lambda t: t.clean(),
        lambda t: t.archive(),
    )


def later(world: Path, *, seconds: int = 1) -> str:
    """A time behind all instants of the table."""
    newest = max(instant.completed or "" for instant in HudiTable.open(world / "t").timeline())
    at = datetime.strptime(newest, "%Y%m%d%H%M%S%f") + timedelta(seconds=seconds)
    return at.strftime("%Y%m%d%H%M%S%f")[:17]


def told(place: str, world: Path) -> str:
    return place.format(neighbour=world / "neighbour")


@pytest.mark.parametrize("place", EACH)
def test_cleans(world: Path, place: str) -> None:
    base, log = names(world)
    instant = later(world)
    folder = told(PLACES[place], world)
    infos = tuple(CleanFileInfo(f"{folder}/{name}") for name in (base, log, "hoodie.properties"))
    plan = CleanerPlan(
        None, "", "KEEP_LATEST_COMMITS", {folder: (base, f"../../neighbour/oslo/{base}")}, 2,
        {folder: infos}, (folder, "../neighbour"),
    )  # fmt: skip
    put(world, f"{instant}.clean.requested", c.encode_cleaner_plan(plan))
    everything(world)


@pytest.mark.parametrize("place", EACH)
def test_rollbacks(world: Path, place: str) -> None:
    base, log = names(world)
    instant = later(world)
    folder = told(PLACES[place], world)
    files = RollbackRequest(folder, files_to_be_deleted=(f"{folder}/{base}", f"{folder}/hoodie.properties"))
    logs = RollbackRequest("oslo", base.split("_")[0], instant, log_blocks_to_be_deleted={f"{folder}/{log}": 1})
    nameless = RollbackRequest("oslo", folder, folder, log_blocks_to_be_deleted={f"{folder}/{log}": 1})
    elsewhere = replace(logs, partition_path=folder)
    for requests, target in (
        ((files, logs), instant), ((files, logs), folder), ((nameless,), instant), ((elsewhere,), instant)
    ):  # fmt: skip
        plan = RollbackPlan(InstantInfo(target, "deltacommit"), requests)
        put(world, f"{instant}.deltacommit.requested", b"")
        put(world, f"{later(world, seconds=2)}.rollback.requested", c.encode_rollback_plan(plan))
        attempt(world, lambda t: t.upsert(rows("a", ts=9)), lambda t: t.rollback(instant))


@pytest.mark.parametrize("place", EACH)
def test_restores(world: Path, place: str) -> None:
    instant = later(world)
    folder = told(PLACES[place], world)
    plan = RestorePlan((InstantInfo(folder, "deltacommit"), InstantInfo(instant, folder)), savepoint_to_restore=folder)
    put(world, f"{instant}.restore.requested", c.encode_restore_plan(plan))
    first = HudiTable.open(world / "t").timeline()[0].requested
    everything(world)
    attempt(world, lambda t: t.restore(folder), lambda t: t.restore(first))


@pytest.mark.parametrize("place", EACH)
def test_compactions(world: Path, place: str) -> None:
    base, log = names(world)
    instant = later(world)
    folder = told(PLACES[place], world)
    based = base.split("_")[2].removesuffix(".parquet")
    operations = (
        CompactionOperation(based, (log,), base, base.split("_")[0], folder),
        CompactionOperation(based, (f"{folder}/{log}",), f"{folder}/{base}", base.split("_")[0], "oslo"),
        CompactionOperation(folder, (log,), base, folder, "oslo"),
    )
    put(world, f"{instant}.compaction.requested", c.encode_compaction_plan(CompactionPlan(operations)))
    everything(world)


@pytest.mark.parametrize("place", EACH)
def test_replacements(world: Path, place: str) -> None:
    base, log = names(world)
    instant = later(world)
    folder = told(PLACES[place], world)
    slices = SliceInfo(f"{folder}/{base}", (f"{folder}/{log}",), base.split("_")[0], folder)
    plan = RequestedReplaceMetadata("CLUSTER", ClusteringPlan((ClusteringGroup((slices,)),)), version=1)
    put(world, f"{instant}.clustering.requested", c.encode_requested_replace(plan))
    everything(world)
    attempt(world, lambda t: t.rollback(instant))


@pytest.mark.parametrize("place", EACH)
def test_files_of_commits(world: Path, place: str) -> None:
    """Incremental reads and the metadata table go by them."""
    base, log = names(world)
    folder = told(PLACES[place], world)
    commits = sorted((world / "t/.hoodie/timeline").glob("*_*.deltacommit"))
    told_by = c.decode_commit(commits[-1].read_bytes(), path="commit")
    (stat,) = told_by.partition_to_write_stats["oslo"]
    for changed in (
        replace(stat, path=f"{folder}/{base}"),
        replace(stat, path=f"{folder}/{log}", base_file=f"{folder}/{base}", log_files=(f"{folder}/{log}",)),
        replace(stat, partition_path=folder, file_id=folder),
        replace(stat, path=f"oslo/.{base.split('_')[0]}_1.log.{'9' * 5_000}"),
        replace(stat, file_size_in_bytes=1 << 62, cdc_stats={f"{folder}/{base}": 1}),
    ):
        for partitions in ({"oslo": (changed,)}, {folder: (changed,)}):
            shutil.rmtree(world / "t/.hoodie/metadata", ignore_errors=True)
            commits[-1].write_bytes(c.encode_commit_avro(replace(told_by, partition_to_write_stats=partitions)))
            attempt(world, lambda t: t.incremental("20200101").to_arrow(), lambda t: t.scan().to_arrow())
    everything(world)
    attempt(world, lambda t: t.rollback(commits[-1].name.split("_")[0]))


@pytest.mark.parametrize("place", EACH)
def test_groups_that_a_commit_replaces(world: Path, place: str) -> None:
    instant = later(world)
    folder = told(PLACES[place], world)
    replaced = CommitMetadata(
        operation_type="INSERT_OVERWRITE", partition_to_replace_file_ids={folder: (folder,), "oslo": (folder,)}
    )
    put(world, f"{instant}_{later(world, seconds=2)}.replacecommit", c.encode_commit_avro(replaced))
    everything(world)


@pytest.mark.parametrize("place", EACH)
def test_markers(world: Path, place: str) -> None:
    """Those of a timeline server are lines of a file: any text."""
    base, log = names(world)
    instant = later(world)
    folder = told(PLACES[place], world)
    markers = world / f"t/.hoodie/.temp/{instant}"
    markers.mkdir(parents=True)
    (markers / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    lines = [f"{folder}/{name}.marker.{kind}" for name in (base, log) for kind in ("CREATE", "MERGE", "APPEND")]
    (markers / "MARKERS0").write_text("\n".join(lines))
    put(world, f"{instant}.deltacommit.requested", b"")
    put(world, f"{instant}.deltacommit.inflight", b"")
    (world / "t/.hoodie/.heartbeat").mkdir(exist_ok=True)
    (world / f"t/.hoodie/.heartbeat/{instant}").write_bytes(b"pyhudi")
    everything(world)
    attempt(world, lambda t: t.rollback(instant))


def test_a_plan_of_the_tables_own_files_is_carried_out(world: Path) -> None:
    """What is refused above is the place, not the plan."""
    instant = later(world)
    written = next((world / "t/oslo").glob("*.parquet"))
    lost = written.with_name(f"{written.name.rpartition('_')[0]}_20200101000000000.parquet")
    shutil.copy(written, lost)
    plan = CleanerPlan(None, "", "KEEP_LATEST_COMMITS", {}, 2, {"oslo": (CleanFileInfo(f"/gone/oslo/{lost.name}"),)})
    put(world, f"{instant}.clean.requested", c.encode_cleaner_plan(plan))

    assert attempt(world, lambda t: t.clean(), lambda t: t.scan().to_arrow()) == ["", ""]

    assert not lost.exists()
    assert written.exists()
