"""Records of an index by key, as plain values: for people who look into the metadata table."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

Records: TypeAlias = dict[str, dict[str, Any] | None]
"""Key -> what is stored under it; None for a key that is not there."""


def records_by_key(keys: Sequence[str], rows: pa.Table, column: str, name: str) -> Records:
    """The rows of each key, under `name`. They are few: somebody named the keys one by one. `column`: of the keys."""
    by_key: dict[str, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_key.setdefault(row.pop(column), []).append(row)
    return {key: {name: by_key[key]} if key in by_key else None for key in keys}
