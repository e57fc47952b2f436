"""Writing from an Arrow table, in this process."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from pyhudi.engine.code_order import rows_by_code
from pyhudi.engine.input_columns import input_column
from pyhudi.engine.nulls import refuse_null_ordering, refuse_null_required
from pyhudi.engine.partition_rows import PartitionRows
from pyhudi.engine.partitioned import PartitionedInput
from pyhudi.executor import Executor
from pyhudi.format.keys import partition_paths, record_keys
from pyhudi.format.schema import RECORD_KEY
from pyhudi.index.bucket import BucketRule
from pyhudi.storage.protocol import Storage
from pyhudi.table.slice_catalog import SliceCatalog
from pyhudi.write.plan import WorkloadProfile, WritePlan
from pyhudi.write.source import InputSpec, RowOrder, Tagging
from pyhudi.write.target import WriteStatus, WriteTarget


class ArrowSource:
    """An Arrow table as the input of a write.

    Memory: the input, its keys and eight bytes a row, and what `PartitionedInput` says.
    """

    def __init__(self, rows: pa.Table, storage: Storage, executor: Executor) -> None:
        self._input, self._storage, self._executor = rows, storage, executor
        self._placed = PartitionedInput({}, storage, executor)

    @property
    def schema(self) -> pa.Schema:
        return self._input.schema

    @property
    def executor(self) -> Executor:
        return self._executor

    def count(self, spec: InputSpec) -> Mapping[str, int]:
        columns = [input_column(self._input, field) for field in spec.schema]
        rows = pa.Table.from_arrays(columns, schema=spec.schema)
        refuse_null_ordering({name: rows.column(name).null_count for name in spec.ordering})
        refuse_null_required({name: rows.column(name).null_count for name in spec.required})
        keys = record_keys(rows, spec.keys)
        if spec.bare_key is None:
            rows = rows.append_column(RECORD_KEY, keys)
        splits = spec.order is RowOrder.BY_KEY_IN_PARTITION
        self._placed = PartitionedInput(by_partition(rows, spec), self._storage, self._executor, splits_by_key=splits)
        return self._placed.counts

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> WorkloadProfile:
        return self._placed.tag(stored, tagging)

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> Mapping[tuple[str, int], int]:
        return self._placed.count_buckets(rules)

    def stored_keys(self) -> tuple[int, str]:
        return self._placed.stored_keys()

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        return self._placed.write(target, plan)

    def close(self) -> None:
        self._input = self._input.slice(0, 0)
        self._placed = PartitionedInput({}, self._storage, self._executor)


def by_partition(rows: pa.Table, spec: InputSpec) -> dict[str, PartitionRows]:
    """The rows of each partition that has any, in the order in which partitions first appear."""
    encoded = partition_paths(rows, spec.keys).chunk(0)
    paths = encoded.dictionary.to_pylist()
    key_column = spec.bare_key or RECORD_KEY
    if len(rows) == 0:
        return {}
    if len(paths) == 1:
        return {paths[0]: PartitionRows(rows, key_column)}
    parts = rows_by_code(np.asarray(encoded.indices), len(paths))
    return {path: PartitionRows(rows, key_column, of) for path, of in zip(paths, parts, strict=True) if len(of)}
