"""Procedures that repair what other tools left."""

from pyhudi.api.service_calls.repairs import add_partition_marks, delete_markers, partitions_marked
from pyhudi.errors import Unsupported
from pyhudi.spark.procedures.procedure import PATH, REQUIRED, TABLE, Argument, Invocation, Procedure, Row, flag

_DRY_RUN = (TABLE, flag("dry_run", True), PATH)


def _delete_marker(call: Invocation) -> list[Row]:
    for one in str(call["instant_time"]).split(","):
        delete_markers(call.table._handle, one.strip())
    return [(True,)]


def _repair_add_partition_meta(call: Invocation) -> list[Row]:
    found = partitions_marked(call.table._access.snapshot())
    added = () if call["dry_run"] else add_partition_marks(call.table._handle)
    return [
        (partition, "Yes" if any(marks) else "No", "Repaired" if partition in added else "None")
        for partition, marks in found.items()
    ]


def _repair_migrate_partition_meta(call: Invocation) -> list[Row]:
    if not call["dry_run"]:
        raise Unsupported(
            "CALL repair_migrate_partition_meta: dry_run => false: partitions keep the files that mark them as text, "
            "which all readers know; dry_run => true shows them"
        )
    return [
        (partition, str(is_text).lower(), str(is_base).lower(), "MIGRATE" if is_text else "NONE")
        for partition, (is_text, is_base) in partitions_marked(call.table._access.snapshot()).items()
    ]


REPAIRS: dict[str, Procedure] = {
    "delete_marker": Procedure(
        "delete the markers of instants that have ended", (TABLE, Argument("instant_time", REQUIRED), PATH),
        "delete_marker_result boolean", _delete_marker,
    ),
    "repair_add_partition_meta": Procedure(
        "put the files that mark folders as partitions, where they are missing", _DRY_RUN,
        "partition_path string, metadata_is_present string, action string", _repair_add_partition_meta,
    ),
    "repair_migrate_partition_meta": Procedure(
        "in which form partitions are marked", _DRY_RUN,
        "partition_path string, text_metafile_present string, base_metafile_present string, action string",
        _repair_migrate_partition_meta,
    ),
}  # fmt: skip
