"""Change data by their meaning: whatever Apache Hudi adds to the images, and however it spells them."""

import json
from collections import Counter

import pyarrow as pa

from pyhudi.format.schema.conversion import META_FIELDS

Told = Counter[tuple[str, str, str | None, str | None]]


def counted(rows: pa.Table) -> Told:
    """Each change with its operation, time and images, and how often it is told."""
    return Counter((row["op"], row["ts_ms"], told(row["before"]), told(row["after"])) for row in rows.to_pylist())


def told(text: str | None) -> str | None:
    """An image without meta fields and nulls, and without decimals: Apache Hudi loses these where no log has them."""
    if text is None or text == "null":
        return None
    image = {name: value for name, value in json.loads(text).items() if name not in META_FIELDS}
    kept = {name: value for name, value in image.items() if value is not None and not name.startswith("dec")}
    return json.dumps(kept, sort_keys=True)
