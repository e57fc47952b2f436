"""A table that pyhudi and the real Apache Hudi both write, and the model that says what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.format.names import BaseFileName
from pyhudi.format.timeline.action_files import decode_commit
from pyhudi.format.timeline.instant_text import format_instant, parse_instant_ms
from tests.interop.cow_rows import COMMIT_TIME, META_BUT_TIME, Model, Row, table_of
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

METADATA_PARTITIONS = "hoodie.table.metadata.partitions"

SEVERAL_GROUPS = {
    # room for 50 rows beside the fixed weight that the plan counts for a file
    "hoodie.parquet.max.file.size": 520_480,
    "hoodie.copyonwrite.record.size.estimate": 400,
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.index.bloom.num_entries": 1_000,
}


@dataclass(frozen=True)
class Shape:
    """How a table is keyed and laid out."""

    name: str
    record_key: tuple[str, ...] = ("id",)
    partition_by: tuple[str, ...] = ("city",)
    ordering: str | None = "ts"
    properties: Mapping[str, object] = field(default_factory=dict)


SHAPES = (
    Shape("plain"),
    Shape("hive_commit_time", ordering=None, properties={"hoodie.datasource.write.hive_style_partitioning": True}),
    Shape("unpartitioned", partition_by=()),
    Shape(
        "composite_encoded",
        record_key=("id", "region"),
        partition_by=("region", "city"),
        properties={"hoodie.datasource.write.partitionpath.urlencode": True},
    ),
    Shape(
        "hive_encoded_commit_time",
        record_key=("region", "id"),
        partition_by=("region",),
        ordering=None,
        properties={
            "hoodie.datasource.write.hive_style_partitioning": True,
            "hoodie.datasource.write.partitionpath.urlencode": True,
        },
    ),
)
PLAIN = SHAPES[0]


class Shared:
    """One table, its writers on both sides and its model."""

    table_type, action = "COPY_ON_WRITE", "commit"

    def __init__(self, path: Path, shape: Shape = PLAIN, *, version: int = 8) -> None:
        self.path, self.shape = path, shape
        self.ours = HudiTable.create(
            path,
            name="rides",
            record_key=shape.record_key,
            partition_by=shape.partition_by or None,
            ordering=shape.ordering,
            table_type=self.table_type,
            table_version=version,
            properties={**SEVERAL_GROUPS, **shape.properties},
        )
        self.model = Model(keeps_greater=shape.ordering is not None)

    # Our turn.

    def bulk_insert(self, new: list[Row]) -> str:
        return self._took_in(self.ours.bulk_insert(self._as_table(new)).requested, new)

    def insert(self, new: list[Row]) -> str:
        return self._took_in(self.ours.insert(self._as_table(new)).requested, new)

    def upsert(self, new: list[Row]) -> str:
        return self._took_in(self.ours.upsert(self._as_table(new)).requested, new)

    def delete(self, keys: Iterable[str]) -> str:
        """Delete by the key and partition columns alone: no ordering value, so the delete wins."""
        gone = self._stored(keys)
        requested = self.ours.delete(self._as_table(gone).select(self._key_columns())).requested
        assert requested is not None
        self.model.delete(requested, [row["id"] for row in gone])
        return requested

    # The turn of Apache Hudi.

    def hudi_write(self, hudi: ReferenceHudi, operation: str, new: list[Row], **options: Any) -> str:
        known = {instant.requested for instant in self.ours.timeline()}
        hudi.write(self.path, self._as_table(new), operation=operation, **{**self.hudi_options(), **options})
        requested = [
            instant.requested
            for instant in self.ours.timeline()
            if instant.requested not in known and instant.action == self.action and instant.completed is not None
        ]
        assert len(requested) == 1, requested
        if operation == "delete":
            self.model.delete(requested[0], [row["id"] for row in new])
        else:
            self.model.upsert(requested[0], new)
        return requested[0]

    def hudi_delete(self, hudi: ReferenceHudi, keys: Iterable[str], **options: Any) -> str:
        return self.hudi_write(hudi, "delete", self._stored(keys), **options)

    def hudi_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "hoodie.datasource.write.recordkey.field": ",".join(self.shape.record_key),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.shape.partition_by),
        }
        if self.shape.ordering is not None:
            options["hoodie.datasource.write.precombine.field"] = self.shape.ordering
        return options

    # What both must see.

    def check_ours(self) -> pa.Table:
        """Our answer, which is the model's."""
        found = self.ours.scan().to_arrow()
        assert_same_rows(found, self.model.table(), ignore_columns=META_BUT_TIME)
        return found

    def check(self, *readers: ReferenceHudi) -> None:
        """Each reader's answer, with and without the metadata table, is ours to the last meta field."""
        ours = self.check_ours()
        for hudi in readers:
            for listing in (True, False):
                assert_same_rows(hudi.read(self.path, **{"hoodie.metadata.enable": listing}), ours)

    def completed(self, requested: str) -> str:
        found = next(i.completed for i in self.ours.timeline() if i.requested == requested)
        assert found is not None
        return found

    def metadata_partitions(self) -> set[str]:
        return set(self.ours.properties.get(METADATA_PARTITIONS, "").split(",")) - {""}

    def metadata_folders(self) -> set[str]:
        folder = self.path / ".hoodie" / "metadata"
        return {entry.name for entry in folder.iterdir() if entry.is_dir()} - {".hoodie"}

    def metadata_compactions(self) -> list[BaseFileName]:
        """The compactions of the metadata table, by the base files that their commits name."""
        timeline = self.path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
        found = []
        for file in timeline.glob("*.commit"):
            metadata = decode_commit(file.read_bytes(), path=str(file))
            names = [Path(s.path or "").name for of in metadata.partition_to_write_stats.values() for s in of]
            found += [name for name in map(BaseFileName.parse, names) if name is not None]
        return found

    def archived(self) -> set[str]:
        """The requested times of writes that are in the history alone."""
        active = {i.requested for i in self.ours.timeline()}
        return {i.requested for i in self.ours.timeline(history=True) if i.action == self.action} - active

    def base_files(self) -> list[Path]:
        return sorted(f for f in self.path.rglob("*.parquet") if ".hoodie" not in f.parts)

    def file_groups(self) -> set[str]:
        names = [BaseFileName.parse(file.name) for file in self.base_files()]
        return {name.file_id for name in names if name is not None}

    def _took_in(self, requested: str | None, new: list[Row]) -> str:
        assert requested is not None
        self.model.upsert(requested, new)
        return requested

    def _as_table(self, of: list[Row]) -> pa.Table:
        return table_of(of)

    def _stored(self, keys: Iterable[str]) -> list[Row]:
        rows = [self.model.rows[key] for key in keys]
        return [{name: value for name, value in row.items() if name != COMMIT_TIME} for row in rows]

    def _key_columns(self) -> list[str]:
        return list(dict.fromkeys((*self.shape.record_key, *self.shape.partition_by)))


def next_ms(instant: str) -> str:
    """The moment after: an inclusive start that means what this one means as an exclusive start."""
    return format_instant(parse_instant_ms(instant, UTC) + 1, UTC)
