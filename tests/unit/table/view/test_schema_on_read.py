"""A renamed column could be read as if its older values were null, or a new column show a dropped one's.

The history of a write that died, or was taken back, could be taken for the table's.
"""

import json
from typing import Any

import pytest

from pyhudi.errors import CorruptFile
from pyhudi.format.schema.history import parse_history
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.schema_on_read import find_history, read_history
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout

LATEST = (
    '{"max_column_id":0,"version_id":20,"type":"record","fields":[{"id":0,"name":"a","optional":true,"type":"int"}]}'
)


def field(number: int, name: str, kind: Any = "string") -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, "optional": True}


def renamed(*schemas: list[dict[str, Any]]) -> str | None:
    """What a history of these schemas, newest first, says that had two names, or was two columns."""
    content = {"schemas": [{"version_id": 9 - n, "fields": fields} for n, fields in enumerate(schemas)]}
    return parse_history(json.dumps(content).encode()).renamed()


def timeline(*completed: str, pending: tuple[str, ...] = (), until: str | None = None) -> Timeline:
    instants = [Instant(requested, "commit", "COMPLETED", requested) for requested in completed]
    instants += [Instant(requested, "commit", "INFLIGHT") for requested in pending]
    ordered = tuple(sorted(instants, key=lambda instant: instant.requested))
    return Timeline(timeline_layout({"hoodie.timeline.layout.version": "2"}), ordered, until=until)


def stored(*requested: str, content: bytes = b"") -> MemoryStorage:
    storage = MemoryStorage()
    for one in requested:
        storage.put_new(f".hoodie/.schema/{one}_{int(one) + 1}.schemacommit", content)
        storage.put_new(f".hoodie/.schema/{one}.schemacommit.inflight", b"")
    return storage


def inner(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "fields": list(fields)}


def listed(number: int, element: Any) -> dict[str, Any]:
    return {"type": "array", "element_id": number, "element": element, "element_optional": True}


def mapped(key: int, value: int, kind: Any) -> dict[str, Any]:
    return {"type": "map", "key_id": key, "key": "string", "value_id": value, "value": kind, "value_optional": True}


def test_columns_that_keep_their_names_are_told() -> None:
    assert renamed([field(0, "a"), field(1, "b")], [field(0, "a"), field(2, "c")], [field(0, "a", "int")]) is None
    grown = [field(0, "a", inner(field(1, "x")))], [field(0, "a", inner(field(1, "x"), field(2, "y")))]
    assert renamed(*grown) is None


@pytest.mark.parametrize(
    "schemas, name",
    [
        (([field(0, "new")], [field(0, "old")]), "old"),
        (([field(1, "a")], [field(0, "b")], [field(0, "a")]), "a"),
        (([field(2, "a")], [field(0, "a")]), "a"),
        (([field(0, "a", inner(field(1, "y")))], [field(0, "a", inner(field(1, "x")))]), "a.x"),
        (
            ([field(0, "a", listed(1, inner(field(2, "y"))))], [field(0, "a", listed(1, inner(field(2, "x"))))]),
            "a.element.x",
        ),
        (
            ([field(0, "a", mapped(1, 2, inner(field(3, "y"))))], [field(0, "a", mapped(1, 2, inner(field(3, "x"))))]),
            "a.value.x",
        ),
    ],
)
def test_a_renamed_column_is_named(schemas: tuple[list[dict[str, Any]], ...], name: str) -> None:
    assert renamed(*schemas) == name


def test_a_history_counts_once_its_write_is_complete_and_outlives_it() -> None:
    storage = stored("10", "20", "30", "40")
    known = timeline("15", "20", "35", pending=("40",))
    assert find_history(storage, known) == ".hoodie/.schema/20_21.schemacommit"  # 30 was taken back, 40 is pending
    assert find_history(storage, timeline("35")) == ".hoodie/.schema/30_31.schemacommit"  # archived
    assert find_history(storage, timeline()) is None
    beyond = timeline("15", "20", "40", until="20")
    assert find_history(storage, beyond) == ".hoodie/.schema/40_41.schemacommit"  # its older schemas are the same


def test_the_schema_of_the_newest_write_stands_in_for_a_history_that_lacks_it() -> None:
    older = LATEST.replace("20", "10")
    assert [one.since for one in read_history(MemoryStorage(), timeline("20"), LATEST).schemas] == ["20"]
    storage = stored("10", content=f'{{"schemas":[{older}]}}'.encode())
    assert [one.since for one in read_history(storage, timeline("10", "20"), LATEST).schemas] == ["20", "10"]


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"schemas": [{"fields": [{"name": "a"}]}]}'])
def test_a_history_that_does_not_read_is_an_error(content: bytes) -> None:
    with pytest.raises(CorruptFile, match="expected a history of schemas"):
        read_history(stored("10", content=content), timeline("10"), LATEST)
