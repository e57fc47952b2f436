"""The Bloom filters of base files, as their footers hold them."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.footer import KeyFooter
from pyhudi.format.names import BaseFileName, join
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.opening import open_base_file

BLOOMS = pa.schema(
    [
        ("partition", pa.string()),
        ("file", pa.string()),
        ("type", pa.string()),
        ("instant", pa.string()),
        ("bloom_filter", pa.binary()),
    ]
)
"""A base file's filter: its kind, the instant that wrote the file, and its text (Base64) as in the footer."""


@dataclass(frozen=True, slots=True)
class _Task:
    storage: Storage
    partition: str
    name: BaseFileName


def read_blooms(storage: Storage, files: Iterable[tuple[str, BaseFileName]], executor: Executor) -> pa.Table:
    """The filters of base files (partition, name), as `BLOOMS`. A file without a filter has no row.

    Requests: the footer of each file. Memory: the filters.
    """
    found = executor.run(_read, [_Task(storage, partition, name) for partition, name in files])
    return pa.Table.from_pylist([row for row in found if row is not None], BLOOMS)


def _read(task: _Task) -> dict[str, object] | None:
    file = task.name.format()
    with closing(open_base_file(task.storage, join(task.partition, file))) as opened:
        footer = KeyFooter.parse(opened.entries)
    if footer.bloom_text is None:
        return None
    return {
        "partition": task.partition, "file": file, "type": footer.bloom_kind, "instant": task.name.requested,
        "bloom_filter": footer.bloom_text,
    }  # fmt: skip
