"""Tasks of a write with their rows, as they are sent to other processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.storage.protocol import Storage
from pyhudi.write.handles.file_group import run_file_group
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.place.plan import FileGroupTask


@dataclass(frozen=True, slots=True)
class SentGroup:
    """A task of a plan. `rows`: its incoming rows, an Arrow stream."""

    task: FileGroupTask
    rows: pa.Buffer

    @classmethod
    def pack(cls, task: FileGroupTask, batches: Iterator[pa.RecordBatch]) -> SentGroup:
        """`batches`: at least one."""
        first = next(batches)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, first.schema) as stream:
            stream.write_batch(first)
            for batch in batches:
                stream.write_batch(batch)
        return cls(task, sink.getvalue())


def write_sent_group(
    target: WriteTarget, task: SentGroup, *, task_attempt: int, storage: Storage | None = None
) -> list[WriteStatus]:
    """Write one file group. `task_attempt`: different in each attempt at one task; it names the files."""
    token = f"{task.task.number}-0-{task_attempt}"
    with pa.ipc.open_stream(task.rows) as batches:
        return run_file_group(target, task.task, iter(batches), write_token=token, storage=storage)
