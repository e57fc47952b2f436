"""Threads could hold more than they may together, wait for ever, or never give memory back."""

import threading
import time
from pathlib import Path

import pyarrow as pa

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.local.row_memory import RowMemory
from pyhudi.storage.scratch import map_file


def test_threads_hold_no_more_than_they_may_together() -> None:
    memory = RowMemory(100, row_bytes=1, piece_bytes=10, let_go=lambda: None)
    lock, held, seen = threading.Lock(), [0], []

    def work(size_bytes: int) -> None:
        with memory.hold(size_bytes):
            with lock:
                held[0] += size_bytes
                seen.append(held[0])
            time.sleep(0.005)
            with lock:
                held[0] -= size_bytes

    LocalExecutor(4).run(work, [40] * 12)

    assert len(seen) == 12
    assert max(seen) == 80


def test_what_is_larger_than_all_goes_alone() -> None:
    memory = RowMemory(100, row_bytes=1, piece_bytes=10, let_go=lambda: None)
    at_once, seen = [0], []

    def work(size_bytes: int) -> None:
        with memory.hold(size_bytes):
            at_once[0] += 1
            seen.append(at_once[0])
            time.sleep(0.005)
            at_once[0] -= 1

    LocalExecutor(4).run(work, [500] * 6)

    assert seen == [1] * 6


def test_room_is_given_back_by_what_fails() -> None:
    memory = RowMemory(100, row_bytes=1, piece_bytes=10, let_go=lambda: None)
    for _ in range(3):
        try:
            with memory.hold(100):
                raise ValueError
        except ValueError:
            pass

    with memory.hold(100):
        pass


def test_memory_is_given_back_whenever_so_many_bytes_went_by() -> None:
    calls: list[int] = []
    memory = RowMemory(100, row_bytes=1, piece_bytes=10, let_go=lambda: calls.append(1))

    for _ in range(10):
        memory.pass_by(30)

    assert len(calls) == 2


def test_rows_of_a_group_are_held_twice() -> None:
    assert RowMemory(100, row_bytes=10, piece_bytes=10, let_go=lambda: None).group_rows_max == 5
    assert RowMemory(100, row_bytes=1_000, piece_bytes=10, let_go=lambda: None).group_rows_max == 1


MIB = 1024 * 1024


def test_rows_that_are_taken_do_not_lie_in_the_files_any_more(tmp_path: Path) -> None:
    """Encoding would map the files once more, and keep them mapped for as long as a row group grows."""
    rows = pa.record_batch({"id": [f"k{n}" for n in range(1_000)], "n": [None, *range(999)], "b": [True] * 1_000})
    with pa.OSFile(str(tmp_path / "rows"), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_batch(rows)
    mapped = pa.py_buffer(map_file(str(tmp_path / "rows")))
    batch = pa.ipc.open_file(mapped).get_batch(0).slice(13, 500)

    def lies_there(buffer: pa.Buffer | None) -> bool:
        return buffer is not None and mapped.address <= buffer.address < mapped.address + mapped.size

    def buffers(of: pa.RecordBatch) -> list[pa.Buffer | None]:
        return [buffer for column in of.columns for buffer in column.buffers()]

    taken = RowMemory(100, row_bytes=1, piece_bytes=10, let_go=lambda: None).take(batch)

    assert any(map(lies_there, buffers(batch)))
    assert not any(map(lies_there, buffers(taken)))
    assert taken.equals(batch)
    assert taken.get_total_buffer_size() < batch.get_total_buffer_size()


def test_a_look_into_the_files_counts_with_the_pages_that_it_maps() -> None:
    calls: list[int] = []
    narrow = pa.record_batch({"a": [1], "b": [1]})
    memory = RowMemory(10 * MIB, row_bytes=1, piece_bytes=100 * MIB, let_go=lambda: calls.append(1))
    small = RowMemory(10 * MIB, row_bytes=1, piece_bytes=1, let_go=lambda: calls.append(2))

    for _ in range(3):
        memory.take(narrow)  # a page of 2 MiB for each of two columns
    assert calls == [1]

    for _ in range(3):
        small.take(narrow)  # both lie in the same page
    assert calls == [1]
    for _ in range(2):
        small.take(narrow)
    assert calls == [1, 2]
