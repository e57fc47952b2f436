"""Which leaves of a Parquet file have bounds in its footer and its page index.

Bounds of floats pass over NaN. Spark's order has NaN behind every number, and Spark would skip rows that it asks for.
"""

import pyarrow as pa
import pyarrow.compute as pc


def leaves_with_bounds(rows: pa.Table, *, is_whole: bool) -> list[str]:
    """The leaves, as Parquet names them, whose bounds are true in Spark's order. Floats are among them if none is NaN.

    `is_whole`: `rows` are all rows of the file, and not its first ones. Floats in structs, lists and maps are left out.
    Seen: Arrow writes 1.0 as the bounds of [1.0, NaN]. Spark 4.3 then finds no row for `x > 2` and for `x = NaN`.
    """
    names: list[str] = []
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            names += [leaf for leaf, kind in _typed_leaves(field.name, field.type) if not pa.types.is_floating(kind)]
        elif not pa.types.is_floating(field.type) or (is_whole and not _has_nan(rows.column(field.name))):
            names.append(field.name)
    return names


def leaves(path: str, kind: pa.DataType) -> list[str]:
    """The leaves of a column, as Parquet names them."""
    return [leaf for leaf, _ in _typed_leaves(path, kind)]


def _has_nan(column: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(column)).as_py())


def _typed_leaves(path: str, kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in _typed_leaves(f"{path}.{field.name}", field.type)]
    if pa.types.is_list(kind):
        return _typed_leaves(f"{path}.list.element", kind.value_type)
    if pa.types.is_map(kind):
        keys = _typed_leaves(f"{path}.key_value.key", kind.key_type)
        return keys + _typed_leaves(f"{path}.key_value.value", kind.item_type)
    return [(path, kind)]
