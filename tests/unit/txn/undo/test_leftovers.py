"""A crash could leave temporary files for ever, or their sweeping take one that somebody still writes.

Writers die in processes of their own, at the step that gives a file its name.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.format.names import PARTITION_METAFILE
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.local_files import TEMPORARY_PREFIX
from pyhudi.table.view.listing import StorageListing
from pyhudi.testing.counting import CountingStorage
from pyhudi.txn.undo.leftovers import own_folders
from tests.support.model import Row, arrow, problems_on

SOURCE_DIR = Path(pyhudi.__file__).parents[1]
HOUR_S = 3_600
STORED = [Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]

DIES = """
import os, re, sys
from pyhudi import HudiTable
from tests.support.model import Row, arrow

path, step, fatal = sys.argv[1:]
name_it = getattr(os, step)

def die(temporary, full, *given, **named):
    if re.search(fatal, full):
        os._exit(9)
    return name_it(temporary, full, *given, **named)

table = HudiTable.open(path)
setattr(os, step, die)
table.upsert(arrow([Row("a", "oslo", 2, 2), Row("c", "york", 2, 2)]))
"""


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    table = HudiTable.create(tmp_path, name="t", record_key="id", partition_by="city", ordering="ts")
    table.upsert(arrow(STORED))
    return table


def dies(root: Path, step: str, fatal: str) -> list[Path]:
    """A writer dies right before it names a file; gives its temporary files."""
    died = subprocess.run(
        [sys.executable, "-c", DIES, str(root), step, fatal], cwd=SOURCE_DIR.parent, check=False,
        env={**os.environ, "PYTHONPATH": f"{SOURCE_DIR}{os.pathsep}{SOURCE_DIR.parent}"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert died.returncode == 9, died.stderr
    left = temporaries(root)
    assert left
    return left


def temporaries(root: Path) -> list[Path]:
    return sorted(root.rglob(f"{TEMPORARY_PREFIX}*"))


def age(paths: list[Path], seconds: float = HOUR_S) -> None:
    for path in paths:
        os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.parametrize(
    "step,fatal,folder",
    [
        ("replace", r"york/.*\.parquet$", "york"),
        pytest.param("link", r"\.commit\.requested$", ".hoodie/timeline", marks=pytest.mark.long),
        ("link", r"\d_\d+\.deltacommit$", ".hoodie/metadata/.hoodie/timeline"),
        pytest.param("replace", r"\.log\.1_0-0-0$", ".hoodie/metadata/files", marks=pytest.mark.long),
    ],
)
def test_the_next_write_sweeps_what_a_dead_one_left(
    table: HudiTable, tmp_path: Path, step: str, fatal: str, folder: str
) -> None:
    left = dies(tmp_path, step, fatal)
    assert folder in {path.parent.relative_to(tmp_path).as_posix() for path in left}
    age(left)

    table.upsert(arrow([Row("a", "oslo", 3, 3)]))

    assert temporaries(tmp_path) == []
    assert problems_on(LocalStorage(str(tmp_path))) == []
    assert table.scan(columns=["id", "v"]).to_arrow().sort_by("id").to_pylist() == [
        {"id": "a", "v": 3},
        {"id": "b", "v": 1},
    ]


def test_a_young_one_stays_until_a_clean(table: HudiTable, tmp_path: Path) -> None:
    """By default a heartbeat lives for three minutes."""
    left = dies(tmp_path, "replace", r"\.parquet$")
    age(left, 170)
    left = [path for path in left if ".temp" not in path.parts]  # a marker of its other thread goes with the folder
    assert left[0].parent.name in ("oslo", "york")
    in_oslo = tmp_path / "oslo" / f"{TEMPORARY_PREFIX}1-ff"
    in_oslo.write_bytes(b"half of a file")

    table.upsert(arrow([Row("a", "oslo", 3, 3)]))
    assert temporaries(tmp_path) == sorted([*left, in_oslo])

    age([in_oslo], 190)
    table.upsert(arrow([Row("a", "oslo", 4, 4)]))
    assert in_oslo.exists()  # nobody died: no folder is looked at for this
    assert table.clean(options={"hoodie.clean.commits.retained": "1"}).files_deleted == 1
    assert not in_oslo.exists()


def test_a_write_after_which_nothing_is_left_sweeps_nothing(table: HudiTable, tmp_path: Path) -> None:
    storage = CountingStorage(LocalStorage(str(tmp_path)))
    HudiTable.open("", storage=storage).upsert(arrow([Row("a", "oslo", 2, 2)]))

    assert storage.counts["sweep"] == 0
    assert storage.counts["put_new"] > 0


def test_a_sweep_that_fails_is_no_failure_of_the_write(
    table: HudiTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    age(dies(tmp_path, "replace", r"\.parquet$"))

    def refuse(full: str, written_before_ms: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pyhudi.storage.local.sweep_temporaries", refuse)
    table.upsert(arrow([Row("a", "oslo", 3, 3)]))

    assert "temporary files of dead writers stay" in caplog.text
    assert len(temporaries(tmp_path)) >= 1


def test_every_folder_that_a_write_changes_is_swept(table: HudiTable, tmp_path: Path) -> None:
    """A folder of a kind that nobody thought of would keep its temporary files."""
    for turn in range(2, 5):
        table.upsert(arrow([Row("a", "oslo", turn, turn)]), options={"hoodie.metadata.compact.max.delta.commits": "1"})
    folders = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {".hoodie/timeline", ".hoodie/metadata/files", "oslo"} < folders

    swept = own_folders(table._access.snapshot().config)

    assert {folder for folder in folders if folder.startswith(".hoodie")} <= set(swept)


def test_a_partition_whose_only_write_was_rolled_back_has_no_files(table: HudiTable, tmp_path: Path) -> None:
    """Its metadata file stays, as with Apache Hudi, whose rollbacks delete what markers or times of instants name
    (`MarkerBasedRollbackStrategy`, `ListingBasedRollbackStrategy`; 0.15, 1.0.2, 1.2.0): it has neither."""
    dies(tmp_path, "link", r"\d_\d+\.commit$")
    assert [path.suffix for path in (tmp_path / "york").glob("*.parquet")] == [".parquet"]

    table.upsert(arrow([Row("a", "oslo", 3, 3)]))

    assert [path.name for path in (tmp_path / "york").iterdir()] == [PARTITION_METAFILE]
    snapshot = table._access.snapshot()
    assert snapshot.listing.partitions() == ["oslo", "rome"]
    assert not [path for path in table.scan().files() if path.startswith("york")]
    assert table.scan(where="city = 'york'").to_arrow().num_rows == 0

    table.upsert(arrow([Row("a", "oslo", 4, 4)]), options={"hoodie.metadata.enable": "false"})
    assert StorageListing(LocalStorage(str(tmp_path))).files("york") == []
    assert {path.partition("/")[0] for path in table.scan().files()} == {"oslo", "rome"}
    table.upsert(arrow([Row("c", "york", 5, 5)]))
    assert table.scan(where="city = 'york'", columns=["v"]).to_arrow()["v"].to_pylist() == [5]
    assert problems_on(LocalStorage(str(tmp_path))) == []
