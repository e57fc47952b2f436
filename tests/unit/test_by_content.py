"""A value that is kept could outlive its content, be given for another content, or take more memory than was said."""

import pyarrow as pa
import pytest

from pyhudi.by_content import ByContent
from pyhudi.format.log.delete import decode_delete_content, encode_delete_content, make_deletes
from pyhudi.format.properties import decode_table_properties
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, arrow


def test_a_value_is_made_once_for_a_content() -> None:
    kept: ByContent[bytes, int] = ByContent(1_000, lambda content, _: len(content))
    asked: list[bytes] = []

    def length(content: bytes) -> int:
        asked.append(content)
        return len(content)

    assert [kept.get(content, lambda: length(content)) for content in (b"a", b"bb", b"a")] == [1, 2, 1]  # noqa: B023
    assert asked == [b"a", b"bb"]
    assert (kept.hits, kept.misses, kept.size_bytes) == (1, 2, 3)


def test_the_value_that_was_not_asked_for_longest_goes_first() -> None:
    kept: ByContent[str, str] = ByContent(80, lambda content, _: 10)
    for content in "abcdefgh":
        kept.get(content, lambda: "")
    kept.get("a", lambda: "")
    kept.get("i", lambda: "")  # no room but for eight

    assert kept.size_bytes == 80
    hits = kept.hits
    kept.get("a", lambda: "")
    assert kept.hits == hits + 1
    kept.get("b", lambda: "")
    assert kept.hits == hits + 1


def test_a_large_value_is_not_kept() -> None:
    kept: ByContent[str, str] = ByContent(80, lambda content, value: len(value))
    kept.get("a", lambda: "x" * 11)
    assert kept.size_bytes == 0


def test_an_error_is_not_kept_and_clearing_forgets() -> None:
    kept: ByContent[str, int] = ByContent(80, lambda content, value: 1)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.get("a", lambda: 3) == 3
    kept.clear()
    assert kept.get("a", lambda: 4) == 4
    assert kept.size_bytes == 1


def test_what_a_caller_does_to_its_properties_reaches_nobody_else() -> None:
    content = b"hoodie.table.name=t\n"
    decode_table_properties(content, path="p")["hoodie.table.name"] = "changed"
    assert decode_table_properties(content, path="p") == {"hoodie.table.name": "t"}


def test_another_handle_sees_what_a_commit_changed() -> None:
    """Each file is still asked for: only the same bytes give the same value."""
    storage = MemoryStorage()
    handles = Handles(storage)
    handles.create().upsert(arrow([Row("a", "oslo", 1, 1)]))
    reader = handles.open()
    assert reader.scan().to_arrow()["v"].to_pylist() == [1]
    handles.open().upsert(arrow([Row("a", "oslo", 2, 2)]))
    assert reader.scan().to_arrow()["v"].to_pylist() == [2]


@pytest.mark.parametrize("ordering", [None, [0, 0], [1, None], [5, 7]])
def test_deletes_with_and_without_ordering_values_come_back(ordering: list[int | None] | None) -> None:
    """Those without take a short way, in the same bytes."""
    columns = () if ordering is None else (pa.array(ordering, pa.int64()),)
    deletes = make_deletes(pa.array(["a", "b"]), pa.array(["oslo", ""]), columns)
    assert decode_delete_content(encode_delete_content(deletes), path="p").equals(deletes)
