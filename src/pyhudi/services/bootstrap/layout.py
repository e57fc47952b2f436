"""How the folders of a source become partitions of a table. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from urllib.parse import unquote

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.keys.record_keys import KeySpec, check_partition_path, partition_paths, partition_values

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ESCAPED = re.compile("%[0-9A-Fa-f]{2}")
_INT32 = 1 << 31
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class FolderStyle:
    """How folders are named. `is_hive_style`: `column=value`. `is_url_encoded`: with `%2F` for `/`."""

    is_hive_style: bool
    is_url_encoded: bool


def folder_style(
    folders: Collection[str], partition_by: Sequence[str], *, is_time_based: bool, decodes_paths: bool
) -> FolderStyle:
    """The style of a source's folders. `folders`: those with data files, relative to the source.

    `is_time_based`: one column may take several folders, as in `2026/01/10`.
    Raises: Invalid for folders that are not one for each partition column, or named in several ways.
    """
    has_own_levels = is_time_based and len(partition_by) == 1
    styles: dict[bool, str] = {}
    for folder in sorted(folders):
        parts = folder.split("/") if folder else []
        if len(parts) != len(partition_by) and not (has_own_levels and parts):
            levels = "/".join(f"{name}=..." for name in partition_by) or "the source's own folder"
            raise Invalid(
                f"source folder '{folder}': expected data files in {levels}, one folder for each partition column, "
                f"found {len(parts)} folders; say partition_by accordingly, or move the files"
            )
        is_hive = all(part.partition("=")[0] == name for part, name in zip(parts, partition_by, strict=False))
        named = next((part for part in parts if "=" in part and not is_hive), None)
        if named is not None:
            raise Invalid(
                f"source folder '{folder}': expected folders named after the partition columns "
                f"{', '.join(partition_by)} in this order, found '{named}'"
            )
        styles.setdefault(is_hive, folder)
    if len(styles) > 1:
        raise Invalid(
            f"source folders '{styles[True]}' and '{styles[False]}': expected one way to name folders, 'column=value' "
            "or plain values"
        )
    is_encoded = not decodes_paths and any(_ESCAPED.search(folder) for folder in folders)
    return FolderStyle(is_hive_style=bool(partition_by) and True in styles, is_url_encoded=is_encoded)


def table_partition(folder: str, *, decodes_paths: bool) -> str:
    """The partition path of a source's folder. Spec: format/bootstrap.md section 1. Raises: Invalid for no path."""
    partition = unquote(folder) if decodes_paths else folder
    check_partition_path(partition)
    return partition


def path_columns(partitions: Collection[str], keys: KeySpec, stored: Collection[str]) -> pa.Schema:
    """The partition columns that files lack, in the types that all of their texts have.

    Whole numbers and days are such; all else is text. Seen: Spark does the same, and more: there `01` is a number,
    which would name the folder `1`.
    Raises: Invalid for a column whose value a path does not tell.
    """
    missing = [name for name in keys.partition_by if name not in stored]
    unknown = next((name for name in missing if name in keys.time_based), None)
    if unknown is not None:
        raise Invalid(
            f"partition column '{unknown}': expected in the source files, as folders tell parts of a time only"
        )
    texts: dict[str, set[str]] = {name: set() for name in missing}
    for partition in partitions:
        for name, text in path_texts(partition, keys).items():
            if name in texts and text is not None:
                texts[name].add(text)
    return pa.schema([pa.field(name, _type_of(texts[name])) for name in missing])


def path_texts(partition: str, keys: KeySpec) -> Mapping[str, str | None]:
    """What a partition path tells of the partition columns, as readers of bootstrapped files take it."""
    return partition_values(partition, replace(keys, is_hive_style=True, is_url_encoded=True))


def refuse_unsteady_paths(partitions: Iterable[str], keys: KeySpec, told: pa.Schema) -> None:
    """Refuse a partition whose values would be written to another folder: an upsert would not find its rows.

    `told`: the columns that paths tell, and their types. Raises: Invalid.
    """
    if not told.names or len(told.names) < len(keys.partition_by):
        return
    for partition in partitions:
        texts = path_texts(partition, keys)
        columns = [pa.array([texts.get(field.name)], pa.string()).cast(field.type) for field in told]
        rows = pa.Table.from_arrays(columns, schema=told)
        (path,) = partition_paths(rows, keys).combine_chunks().dictionary.to_pylist()
        if path != partition:
            raise Invalid(
                f"source folder '{partition}': expected the name that the table gives to these values, '{path}'; "
                "rename the folder, or set hoodie.datasource.write.hive_style_partitioning and "
                "hoodie.datasource.write.partitionpath.urlencode as the folders are named"
            )


def _type_of(texts: Collection[str]) -> pa.DataType:
    if texts and all(_NUMBER.fullmatch(text) for text in texts):
        numbers = [int(text) for text in texts]
        if all(-_INT32 <= number < _INT32 for number in numbers):
            return pa.int32()
        if all(-_INT64 <= number < _INT64 for number in numbers):
            return pa.int64()
    if texts and all(_is_day(text) for text in texts):
        return pa.date32()
    return pa.string()


def _is_day(text: str) -> bool:
    if _DAY.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
