"""A table with every index of the metadata table that pyhudi and the real Apache Hudi both write, and its model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.format.names import BaseFileName
from pyhudi.storage.local import LocalStorage
from tests.support.compare import assert_same_rows
from tests.support.metadata_indexes import index_problems
from tests.support.reference.client import ReferenceHudi

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("name", pa.string()),
        ("number", pa.int32()), ("part", pa.float64()),
    ]
)  # fmt: skip
CITIES = ("oslo", "rome", "york")
STATS = "hoodie.metadata.index.column.stats.enable"
RECORD_INDEX = {
    6: "hoodie.metadata.record.index",
    8: "hoodie.metadata.record.index",
    9: "hoodie.metadata.global.record.level.index",
}
OF_VERSION_6 = {"files", "column_stats", "bloom_filters", "record_index"}
EVERY = {"files", "column_stats", "partition_stats", "bloom_filters", "record_index", "secondary_index_name"}


def indexing(version: int, **more: object) -> dict[str, object]:
    """Every index, by the names of options that both sides know; the metadata table is compacted soon."""
    since_8 = {
        "hoodie.metadata.index.partition.stats.enable": "true",
        "hoodie.metadata.index.secondary.enable": "true",
        "hoodie.metadata.index.secondary.column": "name",
    }
    return {
        STATS: "true",
        **(since_8 if version >= 8 else {}),
        "hoodie.metadata.index.bloom.filter.enable": "true",
        f"{RECORD_INDEX[version]}.enable": "true",
        f"{RECORD_INDEX[version]}.min.filegroup.count": "3",
        "hoodie.metadata.compact.max.delta.commits": "4",
        "hoodie.clean.commits.retained": "2",
        **more,
    }


def row(n: int, *, turn: int, city: str | None = None, mark: str = "$\\") -> Row:
    """Values that tell the cities' files from each other; a null `number` and `name` now and then.

    `mark`: in each name. 1.0.2 finds no value with one that is escaped by its secondary index, in its own tables too.
    """
    at = n % len(CITIES)
    return {
        "id": f"k{n:04}", "city": CITIES[at] if city is None else city, "ts": turn, "v": 1_000 * at + n,
        "name": None if n % 13 == 5 else f"n{at}{mark}{n % 7}", "number": None if n % 5 == at else 10 * turn + at,
        "part": n / 4 - turn,
    }  # fmt: skip


def rows(numbers: Iterable[int], *, turn: int, city: str | None = None, mark: str = "$\\") -> list[Row]:
    return [row(n, turn=turn, city=city, mark=mark) for n in numbers]


class Indexed:
    """`held`: what the table must hold, by key; record keys are unique in the table."""

    def __init__(self, path: Path, kind: str, version: int) -> None:
        self.path, self.kind, self.version = path, kind, version
        self.held: dict[str, Row] = {}
        self.options = {str(k): str(v) for k, v in indexing(version).items()}

    @property
    def ours(self) -> HudiTable:
        tagging = {"hoodie.index.type": "GLOBAL_SIMPLE"}
        if self.version == 6:
            tagging = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}
        return HudiTable.open(self.path, options={**self.options, **tagging})

    def create(self) -> None:
        HudiTable.create(
            self.path, name="rides", record_key="id", partition_by="city", ordering="ts", table_type=self.kind,
            table_version=self.version,
        )  # fmt: skip

    def upsert(self, new: list[Row]) -> None:
        self.ours.upsert(pa.Table.from_pylist(new, SCHEMA))
        self.held |= {of["id"]: of for of in new}

    def delete(self, numbers: Iterable[int]) -> None:
        gone = [self.held.pop(f"k{n:04}") for n in numbers]
        self.ours.delete(pa.Table.from_pylist(gone, SCHEMA).select(["id", "city"]))

    def hudi_upsert(self, hudi: ReferenceHudi, new: list[Row], **options: object) -> None:
        self._hudi(hudi, new, "upsert", options)
        self.held |= {of["id"]: of for of in new}

    def hudi_delete(self, hudi: ReferenceHudi, numbers: Iterable[int], **options: object) -> None:
        self._hudi(hudi, [self.held.pop(f"k{n:04}") for n in numbers], "delete", options)

    def _hudi(self, hudi: ReferenceHudi, new: list[Row], operation: str, options: Mapping[str, Any]) -> None:
        facts: dict[str, Any] = {
            "hoodie.table.name": "rides", "hoodie.datasource.write.table.type": self.kind,
            "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.index.type": "RECORD_INDEX" if self.version <= 8 else "GLOBAL_RECORD_LEVEL_INDEX",
            "hoodie.record.index.update.partition.path": "true",
        }  # fmt: skip
        table = pa.Table.from_pylist(new, SCHEMA)
        hudi.write(self.path, table, operation=operation, **{**facts, **self.options, **options})

    # What both must see.

    @property
    def partitions(self) -> set[str]:
        return set(self.ours.properties.get("hoodie.table.metadata.partitions", "").split(",")) - {""}

    def check(self, hudi: ReferenceHudi, filters: Iterable[str]) -> None:
        """Our indexes say what the data files hold; and `check_answers`."""
        assert index_problems(LocalStorage(str(self.path))) == []
        self.check_answers(hudi, filters)

    def check_answers(self, hudi: ReferenceHudi, filters: Iterable[str]) -> None:
        """Our answer is the model's, and it reads by the indexes what we read."""
        found = self.ours.scan().to_arrow()
        assert_same_rows(found.select(SCHEMA.names), pa.Table.from_pylist(list(self.held.values()), SCHEMA))
        assert_same_rows(hudi.read(self.path, **SKIPPING), found)
        for where in filters:
            wanted = self.ours.scan(where=where).to_arrow()
            assert_same_rows(hudi.read(self.path, where, **SKIPPING), wanted)

    @contextmanager
    def without_files(self, *keeps: str) -> Iterator[list[Path]]:
        """The base files that hold none of these keys are away: a reader that opens one fails."""
        found = self.ours.scan().to_arrow().select(["id", "_hoodie_file_name"]).to_pylist()
        kept = {group_of(of["_hoodie_file_name"]) for of in found if of["id"] in keeps}
        away = [f for f in self.path.glob("*/*.parquet") if group_of(f.name) not in kept]
        for file in away:
            file.rename(file.with_suffix(".away"))
        try:
            yield away
        finally:
            for file in away:
                file.with_suffix(".away").rename(file)


SKIPPING = {
    "hoodie.metadata.enable": True, "hoodie.enable.data.skipping": True, STATS: True,
    "hoodie.metadata.index.partition.stats.enable": True, "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.global.record.level.index.enable": True, "hoodie.metadata.index.secondary.enable": True,
}  # fmt: skip


def group_of(file: str) -> str:
    base = BaseFileName.parse(file)
    return file if base is None else base.file_id
