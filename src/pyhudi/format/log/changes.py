"""The records of change logs: which columns they have, by what a table's writers log.

Spec: format/queries.md section 3, "CDC log records". Seen: the texts are those of Apache Hudi 1.2.0. Releases before
have no `doc` behind the namespace.
"""

import json
from enum import StrEnum
from functools import lru_cache
from typing import Final

from pyhudi.errors import Invalid
from pyhudi.format.avro.schema_text import Json, field, optional, record, schema_text


class ChangeMode(StrEnum):
    """What a change log holds, as `hoodie.table.cdc.supplemental.logging.mode` spells it: keys, the rows before too, or
    the rows before and after."""

    KEYS = "OP_KEY_ONLY"
    BEFORE = "DATA_BEFORE"
    BEFORE_AFTER = "DATA_BEFORE_AFTER"


OP: Final = "op"
TIME: Final = "ts_ms"
KEY: Final = "record_key"
BEFORE: Final = "before"
AFTER: Final = "after"


def parse_change_mode(text: str) -> ChangeMode:
    """The mode that a property states; without one, rows before and after. Releases before 0.14 spell it in lower case.

    Raises: Invalid for any other text.
    """
    folded = text.strip().upper() or ChangeMode.BEFORE_AFTER
    if folded not in ChangeMode._value2member_map_:
        known = " or ".join(mode.value for mode in ChangeMode)
        raise Invalid(f"hoodie.table.cdc.supplemental.logging.mode='{text}': expected {known}")
    return ChangeMode(folded)


@lru_cache(maxsize=64)
def change_schema(mode: ChangeMode, table_schema: str) -> str:
    """The Avro schema of change records. `table_schema`: that of the rows, without meta fields."""
    if mode is ChangeMode.KEYS:
        return schema_text(record("Record", field(OP, ["string", "null"]), field(KEY, ["string", "null"])))

    row = json.loads(table_schema)
    name, namespace = row["name"], row.get("namespace")
    image: Json = {key: value for key, value in row.items() if key != "namespace"}
    fields = [optional(OP, "string", doc="")]
    if mode is ChangeMode.BEFORE:
        fields += [optional(KEY, "string", doc=""), optional(BEFORE, image, doc="")]
    else:
        fields += [optional(TIME, "string", doc=""), optional(BEFORE, image, doc=""), optional(AFTER, name, doc="")]
    return schema_text(record("CDC", *fields, doc="", namespace=namespace))
