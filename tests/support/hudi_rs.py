"""The quick second reader: hudi-rs (the `hudi` package), behind one function, and the errors that it is known for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pyarrow as pa
import pytest
from hudi import HudiQueryType, HudiReadOptions, HudiTable

METADATA_PARTITIONS = "hoodie.table.metadata.partitions="
VERSIONS = pytest.mark.parametrize("version", [pytest.param(8, marks=pytest.mark.long), 9])
"""hudi-rs reads both alike: the test of every change takes the newer one."""


def read_hudi_rs(
    path: str | Path,
    *,
    as_of: str | None = None,
    incremental: tuple[str, str | None] | None = None,
    read_optimized: bool = False,
    options: dict[str, str] | None = None,
) -> pa.Table:
    """The rows that hudi-rs finds: newest snapshot, snapshot as of an instant, or changes in (start, end].

    All columns, meta fields too. It lists files by the metadata table if a table of version 8 or 9 has one, and by the
    storage otherwise. What it is known to answer otherwise is in `tests/golden/test_hudi_rs.py` (tables
    of Apache Hudi) and `tests/second_reader` (ours).
    """
    assert as_of is None or incremental is None
    table = HudiTable(str(path), options)
    wanted = HudiReadOptions()
    if as_of is not None:
        wanted = wanted.with_as_of_timestamp(as_of)
    if incremental is not None:
        start, end = incremental
        wanted = wanted.with_query_type(HudiQueryType.Incremental).with_start_timestamp(start)
        if end is not None:
            wanted = wanted.with_end_timestamp(end)
    if read_optimized:
        wanted = wanted.with_hudi_option("hoodie.read.use.read_optimized.mode", "true")
    batches = table.read(wanted)
    if not batches:
        return table.get_schema_with_meta_fields().empty_table()
    return pa.Table.from_batches(batches)


def read_hudi_rs_by_storage(path: Path) -> pa.Table:
    """The newest snapshot, of files that hudi-rs lists by itself.

    Seen: hudi-rs 0.5 asks the metadata table whatever `hoodie.metadata.enable` says, and takes no other value for a
    table's property. So it reads a copy, of hard links, whose properties name no metadata table.
    """
    with TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(shutil.copytree(path, Path(folder) / "copy", copy_function=os.link))
        shutil.rmtree(copy / ".hoodie" / "metadata", ignore_errors=True)
        properties = copy / ".hoodie" / "hoodie.properties"
        lines = properties.read_text(encoding="utf-8").splitlines(keepends=True)
        properties.unlink()  # a link: what it leads to stays as it is
        properties.write_text("".join(line for line in lines if not line.startswith(METADATA_PARTITIONS)))
        return read_hudi_rs(copy)


@dataclass(frozen=True, slots=True)
class HudiRsError:
    """An error of hudi-rs: it has no classes to import, and its panics are no `Exception`.

    `kind`: the name of the class. `message`: a part of it that does not change from run to run.
    """

    kind: Literal["HudiCoreError", "PanicException"]
    message: str

    @contextmanager
    def expected(self) -> Iterator[None]:
        """Pass when the block ends in this error; a block that has learnt to work fails."""
        with pytest.raises(BaseException) as caught:  # noqa: PT011
            yield
        found = f"{type(caught.value).__name__}: {caught.value}"
        assert found.startswith(f"{self.kind}: ")
        assert self.message in found


VERSION_5 = HudiRsError("HudiCoreError", "Only support table version 6, 8, and 9. Found: 5")
NO_SCHEMA = HudiRsError("HudiCoreError", "No completed commit, and no create schema for the table.")
SEVERAL_ORDERING_COLUMNS = HudiRsError("HudiCoreError", "Multiple ordering fields 'ts,said' are not yet supported")
LOCAL_TIMESTAMP = HudiRsError("PanicException", "not yet implemented")
"""Of Avro's `local-timestamp-micros`, at any depth."""


def kinds_of_partitions(first: str) -> HudiRsError:
    """Custom key generators of versions 8 and 9: the kinds are taken for a part of the columns' names.

    `first`: the first column with its kind, the colon escaped as it is in `hoodie.properties`.
    """
    declared = "declared in `hoodie.table.partition.fields` is not present in the table schema"
    return HudiRsError("HudiCoreError", f"Partition field `{first}` {declared}")
