"""All procedures by name, `CALL help`, and the names of Apache Hudi's that this release does not carry out."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from pyhudi.errors import Invalid, Unsupported
from pyhudi.spark.procedures.buckets import BUCKETS
from pyhudi.spark.procedures.commits import COMMITS
from pyhudi.spark.procedures.files import FILES
from pyhudi.spark.procedures.procedure import REQUIRED, Argument, Invocation, Procedure, Row, bound
from pyhudi.spark.procedures.services import SERVICES
from pyhudi.spark.session import SqlSession
from pyhudi.sql.calls import read_call
from pyhudi.sql.heads import Head

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_TOOL: Final = "this release has no such tool"
_BOOTSTRAP: Final = "HudiTable.bootstrap, or df.write with the operation bootstrap, makes a table of files"
_SYNC: Final = "catalogs are not synchronised in this release; CREATE TABLE … LOCATION makes a table known"
_REPAIR: Final = "this release repairs nothing by itself: a write clears up what dead writers left"
_STATS: Final = "HudiTable.metadata.lookup reads the records of the metadata table"

REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("commits_compare", "export_instants", "show_fs_path_detail", "show_invalid_parquet",
                     "show_logfile_metadata", "show_logfile_records", "hdfs_parquet_import"), _NO_TOOL),
    **dict.fromkeys(("run_bootstrap", "show_bootstrap_mapping", "show_bootstrap_partitions"), _BOOTSTRAP),
    **dict.fromkeys(("hive_sync", "sync_validate"), _SYNC),
    **dict.fromkeys(("repair_add_partition_meta", "repair_migrate_partition_meta", "repair_corrupted_clean_files",
                     "repair_deduplicate", "repair_overwrite_hoodie_props", "delete_marker"), _REPAIR),
    **dict.fromkeys(("upgrade_table", "downgrade_table"), "tables keep their version in this release"),
    **dict.fromkeys(("show_metadata_table_column_stats", "show_metadata_column_stats_overlap"), _STATS),
    **dict.fromkeys(("set_audit_lock", "show_audit_lock_status", "validate_audit_lock", "cleanup_audit_lock"),
                    "locks keep no audit; metrics tell who waited for a table"),
    "run_rollback_inflight_tableservice": "CALL rollback_to_instant takes a pending service off the timeline",
    "validate_metadata_table_files": "HudiTable.metadata.validate() compares the metadata table with the storage",
    "init_metadata_table": "CALL create_metadata_table, or HudiTable.metadata.update()",
    "show_cleans_metadata": "CALL show_cleans",
    "show_clean_plans": "CALL show_cleans tells of cleans that are done",
    "show_file_status": "SELECT * FROM hudi_filesystem_view('table')",
}  # fmt: skip
"""Apache Hudi's procedures that are not carried out, with what to do instead."""


def _help(call: Invocation) -> list[Row]:
    named = call["cmd"]
    if named is not None:
        procedure = _find(str(named).lower())
        lines = [f"{call['cmd']}: {procedure.about}"]
        lines += [
            f"  {one.name}: {'required' if one.default is REQUIRED else f'default {one.default!r}'}"
            for one in procedure.arguments
        ]
        lines.append(f"  gives: {procedure.columns}")
        return [("\n".join(lines),)]
    width = max(map(len, PROCEDURES))
    lines = [f"{name.ljust(width)}  {procedure.about}" for name, procedure in sorted(PROCEDURES.items())]
    return [("\n".join(["synopsis", "  call [command](argument => value, …)", "commands and description", *lines]),)]


PROCEDURES: Final[dict[str, Procedure]] = {
    **BUCKETS,
    **COMMITS,
    **SERVICES,
    **FILES,
    "help": Procedure("the procedures, or the arguments of one", (Argument("cmd"),), "result string", _help),
}


def call_procedure(session: SqlSession, head: Head) -> DataFrame:
    """`CALL [system.]name(…)`. Raises: Invalid for an unknown name, Unsupported for one that is not carried out."""
    call = read_call(head)
    procedure = _find(call.procedure)
    rows = procedure.run(bound(call.procedure, procedure, call, session))
    return session.rows(list(rows), procedure.columns)


def is_procedure(name: str) -> bool:
    """Whether Apache Hudi has a procedure of this name."""
    return name.lower() in PROCEDURES or name.lower() in REFUSED


def _find(name: str) -> Procedure:
    if name in REFUSED:
        raise Unsupported(f"CALL {name}: is not carried out: {REFUSED[name]}")
    if name not in PROCEDURES:
        near = get_close_matches(name, [*PROCEDURES, *REFUSED], 1)
        hint = f"; the nearest is '{near[0]}'" if near else ""
        raise Invalid(f"CALL {name}: expected the name of a procedure, found another{hint}; CALL help lists them")
    return PROCEDURES[name]
