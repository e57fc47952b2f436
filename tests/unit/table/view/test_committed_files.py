"""A new metadata table could list a file that nobody committed, or leave one out: its readers would go by that.

Names are told apart by columns here, and one by one everywhere else: both must say the same.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.committed_files import committed_files
from pyhudi.table.view.file_system_view import LogSlicing, SliceByCompletion, SliceByName
from pyhudi.table.view.listing import StorageListing
from pyhudi.testing.counting import CountingStorage
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout
from pyhudi.versions import LogNaming

INSTANTS = ("20261121110000001", "20261121110000002", "9")
ids = st.sampled_from(["a-0", "a%b", "a.b", "ä", "", "a_b", "f1"])
tokens = st.sampled_from(["0-0-0", "1-2-3", "x", "", "1-2"])
instants = st.sampled_from([*INSTANTS, "x", ""])
names = st.one_of(
    st.builds("{}_{}_{}{}".format, ids, tokens, instants,
              st.sampled_from([".parquet", ".orc", ".txt", "", ".a.b", ".\n"])),
    st.builds(".{}_{}.log.{}_{}{}".format, ids, instants, st.sampled_from(["1", "0", "01", ""]), tokens,
              st.sampled_from(["", ".cdc", ".x", "\n"])),
    st.builds(".{}_{}.log.1".format, ids, instants),
    st.sampled_from(["_SUCCESS", "notes.txt", ".hidden", "not text \udcff"]),
)  # fmt: skip


def counts(name: str, timeline: Timeline, slicing: LogSlicing) -> bool:
    base, logged = BaseFileName.parse(name), LogFileName.parse(name)
    instant = base.requested if base else logged.instant if logged else None
    counts_unasked = slicing.naming is LogNaming.AFTER_SLICE
    return (logged is not None and counts_unasked) or (instant is not None and timeline.is_committed(instant))


# Of the instants only the first is completed; "9" comes before the timeline begins, and so counts as archived.
LAYOUT = timeline_layout({"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"})
TIMELINE = Timeline(
    LAYOUT,
    (
        Instant(INSTANTS[0], "commit", "COMPLETED", "20261121110000003"),
        Instant(INSTANTS[1], "commit", "INFLIGHT"),
    ),
)


@given(
    st.dictionaries(st.sampled_from(["p1", "p2", "p2/q"]), st.lists(names, max_size=8)),
    st.sampled_from([SliceByCompletion(), SliceByName()]),
)
def test_the_files_of_completed_instants_are_those_whose_names_say_so(
    files: dict[str, list[str]], slicing: LogSlicing
) -> None:
    storage = MemoryStorage()
    for partition, listed in files.items():
        storage.put(f"{partition}/.hoodie_partition_metadata", b"")
        for size, name in enumerate(listed):
            storage.put(f"{partition}/{name}", b"x" * size)
    listing = StorageListing(storage)

    found = {of.partition: of.by_name() for of in committed_files(listing, TIMELINE, slicing)}

    expected = {
        partition: {
            f.name: f.size_bytes
            for f in listing.files(partition)
            if counts(f.name, TIMELINE, slicing) and (f.size_bytes or LogFileName.parse(f.name) is None)
        }
        for partition in listing.partitions()
    }
    assert found == expected
    assert all(list(of) == sorted(of) for of in found.values())


@pytest.mark.parametrize("slicing", [SliceByCompletion(), SliceByName()], ids=["by completion", "by name"])
def test_an_empty_log_is_left_out_and_an_empty_base_file_is_not(slicing: LogSlicing) -> None:
    """A writer that died may leave the log, and Apache Hudi cannot read a list with it. The base file is damaged."""
    storage = MemoryStorage()
    for name in (".hoodie_partition_metadata", f".f_{INSTANTS[0]}.log.1_0-0-0", f"f_0-0-0_{INSTANTS[0]}.parquet"):
        storage.put(f"p/{name}", b"")

    (found,) = committed_files(StorageListing(storage), TIMELINE, slicing)

    assert found.by_name() == {f"f_0-0-0_{INSTANTS[0]}.parquet": 0}


def test_each_folder_is_listed_once() -> None:
    storage = CountingStorage(MemoryStorage())
    for partition in ("a/1", "a/2", "b/1"):
        storage.put(f"{partition}/.hoodie_partition_metadata", b"")
        storage.put(f"{partition}/f_0-0-0_{INSTANTS[0]}.parquet", b"")
    storage.reset()

    found = list(committed_files(StorageListing(storage), TIMELINE, SliceByCompletion()))

    assert {of.partition: len(of.names) for of in found} == {"a/1": 1, "a/2": 1, "b/1": 1}
    assert storage.counts["list"] == 6, "the root, two folders, three partitions"
