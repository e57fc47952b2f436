"""A write in this process whose rows are made of the table's own, anew in each of its attempts."""

from collections.abc import Callable
from contextlib import ExitStack

import pyarrow as pa

from pyhudi.api.handle import TableHandle
from pyhudi.api.writes import WriteCall, WriteCourse
from pyhudi.engine.local.arrow_source import ArrowSource
from pyhudi.storage.scratch import sweep_once
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.write import Turns
from pyhudi.write.input.source import Operation, PreparedWrite
from pyhudi.write.memory_settings import SPILL_FOLDER, MemorySettings
from pyhudi.write.operation import WriteResult, run_row_change
from pyhudi.write.settings import WriteSettings

AsSource = Callable[[pa.RecordBatchReader], ArrowSource]
"""Makes rows the input of a write, for as long as the attempt lasts."""


def write_stored_rows(
    handle: TableHandle,
    course: WriteCourse,
    operation: Operation,
    settings: WriteSettings,
    prepare: Callable[[Snapshot, AsSource], PreparedWrite],
    call: WriteCall,
) -> WriteResult:
    """Write what `prepare` makes of the table as it is when an attempt begins, and run what follows a commit.

    Where another writer is in the way the rows are made anew, and the table is held from then on, so that the write
    succeeds. Raises: what `prepare` raises, with nothing written.
    """
    memory = MemorySettings.from_options(handle.callers_options(call.options))
    sweep_once(memory.spill_folder, setting=SPILL_FOLDER)

    def attempt(turns: Turns) -> WriteResult:
        with ExitStack() as held:

            def as_source(rows: pa.RecordBatchReader) -> ArrowSource:
                source = ArrowSource(rows, handle.access.storage, handle.executor, memory, is_own=True)
                held.callback(source.close)
                return source

            return run_row_change(
                turns, operation, lambda now: prepare(now, as_source), settings,
                extra_metadata=course.extra, then=course.finish,
            )  # fmt: skip

    result = course.run(attempt, handle.access, None)
    course.follow(result, handle.access, None)
    return result
