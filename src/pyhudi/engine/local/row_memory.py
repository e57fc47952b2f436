"""The memory that threads share while they write file groups from rows in files."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

_PAGE_BYTES: Final = 2 * 1024 * 1024
"""What one look into a mapped file may take. Seen: Linux 6.18 maps so much where the file lies in large pages."""
_LET_GO_BYTES: Final = 64 * 1024 * 1024


class RowMemory:
    """Bounds the bytes that are held at a time. A file group that is larger than the bound is held alone.

    `row_bytes`: of a row in the files. `piece_bytes`: of a batch in the files, at most. `let_go`: gives back the
    memory that was used to look at the files; called each time that enough was looked at.
    """

    def __init__(self, max_bytes: int, *, row_bytes: int, piece_bytes: int, let_go: Callable[[], None]) -> None:
        assert max_bytes >= 1
        self.row_bytes = row_bytes
        self._max_bytes, self._piece_bytes, self._let_go = max_bytes, piece_bytes, let_go
        self._let_go_bytes = min(_LET_GO_BYTES, max_bytes)
        self._held_bytes = self._passed_bytes = 0
        self._changed = threading.Condition()

    @property
    def group_rows_max(self) -> int:
        """How many rows of a file group have room when they are held twice, as merging and sorting need."""
        return max(1, self._max_bytes // (2 * max(1, self.row_bytes)))

    @contextmanager
    def hold(self, size_bytes: int) -> Iterator[None]:
        """Hold so many bytes, once there is room for them or nobody else holds any."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held_bytes or self._held_bytes + size_bytes <= self._max_bytes)
            self._held_bytes += size_bytes
        try:
            yield
        finally:
            with self._changed:
                self._held_bytes -= size_bytes
                self._changed.notify_all()

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A copy of rows from the files, so that the files are not looked at again when the rows are encoded."""
        copied = pa.ipc.read_record_batch(batch.serialize(), batch.schema)
        self.pass_by(batch.nbytes + min(batch.num_columns * _PAGE_BYTES, self._piece_bytes + _PAGE_BYTES))
        return copied

    def pass_by(self, size_bytes: int) -> None:
        """Note that so many bytes of the files were looked at, or mapped to look at a part of them."""
        with self._changed:
            self._passed_bytes += size_bytes
            is_due = self._passed_bytes >= self._let_go_bytes
            if is_due:
                self._passed_bytes = 0
        if is_due:
            self._let_go()
