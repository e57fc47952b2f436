"""A reader could merge blocks that do not count, leave out ones that do, or take them in another order.

No table of Apache Hudi's in this suite pins these rules: each was broken on purpose, and every answer stayed equal.
"""

from collections.abc import Callable, Mapping, Sequence

import pytest

from pyhudi.errors import CorruptFile
from pyhudi.format.log.block import HeaderKey
from pyhudi.format.log.headers import instant_time
from pyhudi.format.log.writer import encode_avro_block, encode_rollback_block
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.slices.slice_log import slice_blocks
from pyhudi.table.view.stored_file import StoredFile
from tests.support.logs import header, rows


def block(instant: str, *, compacts: Sequence[str] = (), identifier: str = "") -> bytes:
    entries = header(instant)
    if compacts:
        entries[HeaderKey.COMPACTED_BLOCK_TIMES] = ",".join(compacts)
    if identifier:
        entries[HeaderKey.BLOCK_IDENTIFIER] = identifier
    return encode_avro_block([rows(2)], entries)


def rollback(instant: str, target: str) -> bytes:
    return encode_rollback_block(instant_time=instant, target_instant_time=target)


def instants(
    *files: bytes, is_visible: Callable[[str], bool] = lambda instant: True, is_whole: bool = False
) -> list[str]:
    storage = MemoryStorage()
    for number, content in enumerate(files):
        storage.put_new(f"log.{number}", content)
    logs = [(f"log.{number}", StoredFile(storage, f"log.{number}"), len(of)) for number, of in enumerate(files)]
    return [instant_time(one) for one in slice_blocks(logs, is_visible, is_whole=is_whole)]


def test_blocks_come_as_they_lie_those_of_an_instant_together() -> None:
    assert instants(block("001") + block("002"), block("001"), block("003")) == ["001", "001", "002", "003"]


def test_blocks_of_instants_that_are_not_committed_are_left_out() -> None:
    assert instants(block("001") + block("002") + block("003"), is_visible=lambda instant: instant != "002") == [
        "001",
        "003",
    ]


def test_a_rollback_takes_the_blocks_before_it_and_leaves_those_after_it() -> None:
    assert instants(block("001") + block("002"), rollback("003", "002") + block("004")) == ["001", "004"]
    assert instants(block("001") + rollback("002", "001") + block("001")) == ["001"]
    assert instants(rollback("003", "002") + block("002")) == ["002"]


@pytest.mark.parametrize(
    "content, expected",
    [
        ({"001": (), "002": (), "003": ("001", "002")}, ["003"]),
        # It stands where the newest of its sources stood, whatever was written before it was done.
        ({"001": (), "002": (), "003": (), "004": ("001", "002")}, ["004", "003"]),
        ({"001": (), "002": (), "003": ("002", "001"), "004": (), "005": ("003", "004")}, ["005"]),
        ({"001": (), "002": (), "004": ("001",), "005": ()}, ["004", "002", "005"]),
        # Its sources were cleaned away.
        ({"003": ("001", "002"), "004": ()}, ["003", "004"]),
        ({"003": ("001", "002"), "005": ("003", "004")}, ["005"]),
        ({"002": (), "003": ("001", "002")}, ["003"]),
    ],
)
def test_a_log_compaction_stands_in_for_its_sources(
    content: Mapping[str, tuple[str, ...]], expected: list[str]
) -> None:
    assert instants(*(block(instant, compacts=of) for instant, of in content.items())) == expected


def test_a_log_compaction_without_its_sources_does_not_count_in_the_whole_log_of_a_slice() -> None:
    files = block("003", compacts=("001", "002")), block("004"), block("005", compacts=("002", "004"))
    assert instants(*files) == ["003", "005"]
    assert instants(*files, is_whole=True) == ["005"]


def test_a_log_compaction_that_is_not_committed_stands_in_for_nothing() -> None:
    files = block("001"), block("002"), block("003", compacts=("001", "002"))
    assert instants(*files, is_visible=lambda instant: instant != "003") == ["001", "002"]


def test_of_several_attempts_the_one_with_the_most_blocks_counts() -> None:
    files = [block("001", identifier=of) for of in ("0,0", "1,0", "1,1", "0,0")]
    assert instants(*files, block("002", identifier="0,0")) == ["001", "001", "002"]
    assert instants(block("001", identifier="0,0"), block("001")) == ["001", "001"]


def test_a_torn_block_is_passed_over_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    torn = block("002")[:-30]
    assert instants(block("001") + torn + block("003")) == ["001", "003"]
    assert "log.0" in caplog.text
    assert f"{len(torn)} bytes" in caplog.text


def test_damage_that_no_dead_writer_leaves_is_an_error() -> None:
    with pytest.raises(CorruptFile, match=r"log\.0"):
        instants(b"PAR1" + block("001"))
