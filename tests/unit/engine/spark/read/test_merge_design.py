"""Slices with logs could be read the slow way, or natively where logs are larger than base files, or not at all; and
the bits that say which rows are touched could name others.

Both are pure; that both designs give the same rows is in `tests/spark/test_merge_designs.py`.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from pyhudi.engine.spark.read.merge_design import NATIVE_BYTES_MAX, NATIVE_BYTES_MIN, split_by_design
from pyhudi.engine.spark.read.native_merge import pack_positions
from pyhudi.table.read.plan import PlannedFile

BASE = NATIVE_BYTES_MIN


def piece(name: str, base_bytes: int, *log_bytes: int) -> PlannedFile:
    logs = tuple((f"p/{name}.log.{n}", size_bytes) for n, size_bytes in enumerate(log_bytes, 1))
    path = f"p/{name}.parquet" if base_bytes else logs[0][0]
    return PlannedFile(path, "p", base_bytes + sum(log_bytes), logs, "1")


def names(pieces: list[PlannedFile]) -> list[str]:
    return [one.path.rpartition("/")[2].partition(".")[0] for one in pieces]


def test_small_logs_upon_large_files_are_read_apart_and_others_whole() -> None:
    few, many, alone = piece("few", BASE, BASE // 100), piece("many", BASE, 2 * BASE), piece("alone", 0, 10)

    apart, whole = split_by_design([many, few, alone])

    assert names(apart) == ["few"]
    assert names(whole) == ["many", "alone"]


def test_small_tables_are_merged_whole() -> None:
    slices = [piece("a", BASE - 1, 1)]

    assert split_by_design(slices) == ([], slices)


def test_what_is_sent_to_every_task_is_bounded_and_the_smallest_share_of_logs_comes_first() -> None:
    slices = [piece("a", NATIVE_BYTES_MAX // 2, 20), piece("b", NATIVE_BYTES_MAX // 2, 30)]
    slices.append(piece("c", NATIVE_BYTES_MAX // 2, 10))

    apart, whole = split_by_design(slices)

    assert names(apart) == ["a", "c"]
    assert names(whole) == ["b"]


def test_of_base_files_of_one_name_one_is_read_apart() -> None:
    """Bucket tables may number their groups alike in every partition."""
    one = piece("same", BASE, 10)
    other = PlannedFile("q/same.parquet", "q", BASE + 10, (("q/same.log.1", 10),), "1")

    apart, whole = split_by_design([one, other])

    assert (apart, whole) == ([one], [other])


@given(st.sets(st.integers(0, 1_000)))
def test_bits_are_set_at_the_places_and_nowhere_else(places: set[int]) -> None:
    words = pack_positions(np.array(sorted(places), np.int64)).tolist()

    # As Spark looks: the word of the row, shifted, its lowest bit; words count as signed.
    assert {at for at in range(64 * len(words)) if words[at >> 6] >> (at & 63) & 1} == places
