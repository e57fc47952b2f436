"""A table of two partitions with logs, and an eye on what is read of it."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.read import files
from tests.support.odd_values import SCHEMA, odd_rows


@dataclass
class Read:
    """What queries read: the partitions of the slices, their columns, and in which threads."""

    partitions: list[str] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    threads: set[int] = field(default_factory=set)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    noted, real = Read(), files.read_planned

    def noting(storage: Any, plan: Any, file: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        noted.partitions.append(file.partition)
        noted.columns |= set(plan.columns_read)
        noted.threads.add(threading.get_ident())
        yield from real(storage, plan, file, **options)

    monkeypatch.setattr(files, "read_planned", noting)
    return noted


@pytest.fixture(scope="package")
def table() -> HudiTable:
    """Rows k020 to k049 were updated since: `i32` is 7, in logs."""
    table = HudiTable.create(
        "unused", name="t", record_key="id", partition_by="city", table_type="MERGE_ON_READ", schema=SCHEMA,
        properties={"hoodie.metadata.record.index.enable": "true"}, storage=MemoryStorage(),
    )  # fmt: skip
    rows = odd_rows(140)
    table.bulk_insert(rows)
    table.upsert(rows.set_column(2, "i32", pa.array([7] * 140, pa.int32())).slice(20, 30))
    return table
