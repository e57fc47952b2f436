"""The tables that Apache Hudi wrote, in `tests/golden/tables`, with the answers that it gave itself."""

import json
import re
import zipfile
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.listing import FileListing, StorageListing
from pyhudi.timeline.active import Timeline

FOLDER = Path(__file__).parents[1] / "golden" / "tables"

_ANSWER = re.compile(r"(?P<query>snapshot|read_optimized|time_travel|incremental)(?P<times>(?:_\d+)*)\.parquet")


@dataclass(frozen=True, slots=True)
class GoldenAnswer:
    """A query and the file with its answer.

    `query`: snapshot, read_optimized, time_travel or incremental. `times`: as in the file's name: none, T, or B and E.
    """

    table: str
    file: str
    query: str
    times: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}-{self.file.removesuffix('.parquet')}"


@dataclass(frozen=True, slots=True)
class GoldenTable:
    """A table, unpacked. `path`: its base path."""

    name: str
    path: Path
    manifest: dict[str, Any]

    def expected(self, answer: GoldenAnswer) -> pa.Table:
        """The rows that Apache Hudi gave."""
        return pq.read_table(self.path.with_name(f"{self.name}.expected") / answer.file)

    def range_bounds(self, answer: GoldenAnswer) -> tuple[str, str]:
        """Start and end for our incremental query that has this answer.

        Seen: 1.0.x counts the start in (tables of version 8), so that ours, which does not, starts a
        millisecond earlier; the `000` of the beginning stays.
        """
        start, end = answer.times
        if start != "000" and self.counts_start_in:
            start = millisecond_before(start)
        return start, end

    @property
    def counts_start_in(self) -> bool:
        return self.manifest["table_version"] >= 8 and self.manifest["hudi_version"].startswith("1.0.")


class GoldenTables:
    """Tables unpacked on demand below a folder, each once."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, name: str) -> GoldenTable:
        folder = self._root / name
        if not folder.exists():
            with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
                archive.extractall(folder)
        manifest = json.loads((folder / f"{name}.expected" / "manifest.json").read_text())
        return GoldenTable(name, folder / name, manifest)


@cache
def golden_names() -> tuple[str, ...]:
    """Every table but those of `evolved_names`, `base_file_names` and `old_names`, by name."""
    others = {*evolved_names(), *base_file_names(), *old_names()}
    return tuple(sorted(path.stem for path in FOLDER.glob("*.zip") if path.stem not in others))


@cache
def old_names() -> tuple[str, ...]:
    """The tables of versions that are only read."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*_v2_*.zip")))


@cache
def evolved_names() -> tuple[str, ...]:
    """The tables whose columns Apache Hudi changed by ALTER TABLE, with schema on read."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*_evo_*.zip")))


@cache
def base_file_names() -> tuple[str, ...]:
    """The tables whose base files are no Parquet files that hold every column."""
    kinds = ("_orc_", "_bootstrap_", "_drop_part_", "_lance_")
    return tuple(sorted(path.stem for path in FOLDER.glob("*.zip") if any(kind in path.stem for kind in kinds)))


def with_long(names: Iterable[str], quick: Container[str]) -> list[object]:
    """Names as parameters of a test. Those that are not quick ones go to the long tests."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.long) for name in names]


def half_long(names: Sequence[str], *, start: int) -> list[object]:
    """Names as parameters of a test: every second one from `start` on for each change, the others for the long tests.

    Names that follow each other are tables of one kind. Two tests with different starts see each of them.
    """
    return with_long(names, names[start::2])


@cache
def golden_answers(name: str) -> tuple[GoldenAnswer, ...]:
    """The answers of a table that this release gives too: all but change data and read-optimized ones."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        files = [path.rpartition("/")[2] for path in archive.namelist() if f"{name}.expected/" in path]
    matches = [(file, _ANSWER.fullmatch(file)) for file in sorted(files)]
    return tuple(
        GoldenAnswer(name, file, match["query"], tuple(match["times"].strip("_").split("_")) if match["times"] else ())
        for file, match in matches
        if match is not None
    )


@cache
def has_metadata_table(name: str) -> bool:
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        return any(path.startswith(f"{name}/.hoodie/metadata/.hoodie/") for path in archive.namelist())


def millisecond_before(instant: str) -> str:
    """The instant text of the millisecond before."""
    moment = datetime.strptime(instant, "%Y%m%d%H%M%S%f") - timedelta(milliseconds=1)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def listing_by_storage(storage: Storage, config: TableConfig, timeline: Timeline, zone: tzinfo) -> FileListing:
    """As `open_listing`, by the storage even where there is a metadata table."""
    return StorageListing(storage)
