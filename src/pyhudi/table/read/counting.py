"""How many rows a plan's answer has, without reading more of them than it takes to know."""

from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.storage.protocol import Storage
from pyhudi.table.read.files import read_planned
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.base_files.opening import open_base_file


def count_rows(storage: Storage, plan: ReadPlan, executor: Executor) -> int:
    """The number of rows of the answer, exactly.

    A base file without logs tells it in its footer, where every row is asked for. Otherwise the columns that choose
    rows are read, and of a slice with logs the key: the merged rows are counted.
    """
    if not plan.files:  # before the first write there may be no column either
        return 0
    takes_all = plan.predicate is None and plan.commit_times is None
    narrow = replace(plan, schema=pa.schema([_cheapest(plan)]))

    def count(file: PlannedFile) -> int:
        if takes_all and not file.logs:
            with closing(open_base_file(storage, file.path)) as opened:
                return opened.row_count
        return sum(map(len, read_planned(storage, narrow, file, use_threads=False)))

    return sum(executor.run(count, plan.files))


def _cheapest(plan: ReadPlan) -> pa.Field:
    """A column that must be read anyhow, or else the key, which merging needs."""
    shown = plan.shown.schema(plan.stored_schema)
    asked = set() if plan.predicate is None else plan.predicate.columns
    names = [name for name in shown.names if name in asked]
    return shown.field(names[0] if names else RECORD_KEY if RECORD_KEY in shown.names else shown.names[0])
