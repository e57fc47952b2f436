"""Procedures about folders and files, by their paths."""

from pyhudi.errors import Unsupported
from pyhudi.inspect.folders import find_invalid_parquet, read_folder_sizes
from pyhudi.spark.procedures.procedure import (
    FILTER,
    REQUIRED,
    Argument,
    Invocation,
    Procedure,
    Row,
    flag,
    limit,
    number,
)

_PATH = Argument("path", REQUIRED)


def _show_fs_path_detail(call: Invocation) -> list[Row]:
    """Quotas are not known here: -1, as of a file system without any."""
    found = read_folder_sizes(str(call["path"]), of_subfolders=bool(call["is_sub"]))
    if call["sort"]:
        found.sort(key=lambda one: (-one.size_bytes, one.path))
    return call.limited(
        (one.folders, one.files, one.size_bytes, one.size_text, one.path, one.size_bytes, -1, -1) for one in found
    )


def _show_invalid_parquet(call: Invocation) -> list[Row]:
    if call["needDelete"]:
        raise Unsupported(
            "CALL show_invalid_parquet: needDelete => true: a data file that a commit names is not deleted by itself; "
            "CALL rollback_to_instant takes the newest write back, CALL rollback_to_savepoint goes further back"
        )
    partitions, instants = (
        {one.strip() for one in str(call[name] or "").split(",") if one.strip()} for name in ("partitions", "instants")
    )
    return call.limited((path,) for path in find_invalid_parquet(str(call["path"]), partitions, instants))


FOLDERS: dict[str, Procedure] = {
    "show_fs_path_detail": Procedure(
        "how much lies in a folder, or in each folder directly in it",
        (_PATH, flag("is_sub"), flag("sort", True), limit(100), FILTER),
        "path_num long, file_num long, storage_size long, `storage_size(unit)` string, storage_path string, "
        "space_consumed long, quota long, space_quota long", _show_fs_path_detail,
    ),
    "show_invalid_parquet": Procedure(
        "Parquet files that do not open",
        (_PATH, number("parallelism", 100), limit(100), flag("needDelete"), Argument("partitions", ""),
         Argument("instants", ""), FILTER), "path string", _show_invalid_parquet,
    ),
}  # fmt: skip
