"""A renamed column could be read as if its older values were null, or a new column show a dropped one's."""

import json
from typing import Any

import pytest

from pyhudi.errors import CorruptFile
from pyhudi.format.schema.history import SchemaHistory
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.schema_on_read import read_history
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout


def field(number: int, name: str, kind: Any = "string") -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, "optional": True}


LATEST = json.dumps({"version_id": 0, "fields": []})
LATER = Instant("20260201000000000", "commit", "COMPLETED", "20260201000000001")
ARCHIVED = Timeline(timeline_layout({"hoodie.timeline.layout.version": "2"}), (LATER,))


def history(*schemas: list[dict[str, Any]]) -> SchemaHistory:
    """The history of these schemas, from the newest to the oldest, as a table has it whose commits are archived."""
    storage = MemoryStorage()
    numbered = [{"version_id": len(schemas) - n, "fields": fields} for n, fields in enumerate(schemas)]
    content = json.dumps({"schemas": numbered})
    storage.put_new(".hoodie/.schema/20260101000000001_20260101000000002.schemacommit", b'{"schemas": []}')
    storage.put_new(".hoodie/.schema/20260102000000001_20260102000000002.schemacommit", content.encode())
    storage.put_new(".hoodie/.schema/20260103000000001.schemacommit.requested", b"")
    return read_history(storage, ARCHIVED, LATEST)


def inner(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "fields": list(fields)}


def listed(number: int, element: Any) -> dict[str, Any]:
    return {"type": "array", "element_id": number, "element": element, "element_optional": True}


def mapped(key: int, value: int, kind: Any) -> dict[str, Any]:
    return {"type": "map", "key_id": key, "key": "string", "value_id": value, "value": kind, "value_optional": True}


def test_columns_that_keep_their_names_are_read() -> None:
    kept = history([field(0, "a"), field(1, "b")], [field(0, "a"), field(2, "c")], [field(0, "a", "int")])
    assert (len(kept.schemas), kept.renamed()) == (3, None)
    kept = history([field(0, "a", inner(field(1, "x")))], [field(0, "a", inner(field(1, "x"), field(2, "y")))])
    assert kept.renamed() is None
    assert read_history(MemoryStorage(), ARCHIVED, LATEST).renamed() is None


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
    assert history(*schemas).renamed() == name


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"schemas": [{"fields": [{"name": "a"}]}]}'])
def test_a_history_that_does_not_read_is_an_error(content: bytes) -> None:
    storage = MemoryStorage()
    storage.put_new(".hoodie/.schema/1_2.schemacommit", content)
    with pytest.raises(CorruptFile, match="expected a history of schemas"):
        read_history(storage, ARCHIVED, LATEST)
