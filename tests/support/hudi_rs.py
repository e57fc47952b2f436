"""The quick second reader: hudi-rs (the `hudi` package), behind one function."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hudi import HudiQueryType, HudiReadOptions, HudiTable


def read_hudi_rs(
    path: str | Path,
    *,
    as_of: str | None = None,
    incremental: tuple[str, str | None] | None = None,
    read_optimized: bool = False,
    options: dict[str, str] | None = None,
) -> pa.Table:
    """The rows that hudi-rs finds: newest snapshot, snapshot as of an instant, or changes in (start, end].

    All columns, meta fields too. Differences of hudi-rs that are not errors of ours: see `format/` of
    the documents, and the marks in the golden tests.
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
