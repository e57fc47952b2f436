"""The text of a table's schema history, as Apache Hudi writes it: compact JSON, the newest schema first.

Spec: format/layout.md section 8.
"""

import json
from typing import Any, Final

from pyhudi.format.schema.history import ARRAY, MAP, RECORD, NumberedColumn, NumberedSchema

_BEGIN: Final = '{"schemas":['


def schema_json(schema: NumberedSchema) -> str:
    """One schema, as a commit states it under `latest_schema`."""
    head: dict[str, Any] = {"max_column_id": schema.number_max, "version_id": int(schema.since), "type": RECORD}
    return _text(head | {"fields": [_field(column) for column in schema.columns]})


def history_text(newest: str, older: bytes | None) -> bytes:
    """A history with one schema more. `newest`: as `schema_json`. `older`: the history so far; None for none.

    Seen: Apache Hudi looks for the first bytes of a history as they are written here, without a space
    (`SerDeHelper.inheritSchemas`). So a history that is spelled otherwise is spelled anew.
    """
    if older is None:
        return f"{_BEGIN}{newest}]}}".encode()
    text = older.decode()
    if not text.startswith(_BEGIN):
        text = _text(json.loads(text))
    return f"{_BEGIN}{newest},{text[len(_BEGIN) :]}".encode()


def _field(column: NumberedColumn) -> dict[str, Any]:
    made: dict[str, Any] = {"id": column.number, "name": column.name, "optional": column.is_optional}
    made["type"] = _kind(column)
    return made if column.doc is None else {**made, "doc": column.doc}


def _kind(column: NumberedColumn) -> Any:
    match column.kind:
        case "record":
            return {"type": RECORD, "fields": [_field(part) for part in column.parts]}
        case "array":
            (item,) = column.parts
            return {
                "type": ARRAY, "element_id": item.number, "element": _kind(item), "element_optional": item.is_optional
            }  # fmt: skip
        case "map":
            key, value = column.parts
            return {
                "type": MAP, "key_id": key.number, "key": _kind(key), "value_id": value.number, "value": _kind(value),
                "value_optional": value.is_optional,
            }  # fmt: skip
    return column.kind


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
