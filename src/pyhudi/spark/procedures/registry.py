"""All procedures by name, `CALL help`, and the names of Apache Hudi's that this release does not carry out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.told_names import nearest_name
from pyhudi.spark.procedures.bootstrap import BOOTSTRAP
from pyhudi.spark.procedures.buckets import BUCKETS
from pyhudi.spark.procedures.cleans import CLEANS
from pyhudi.spark.procedures.commits import COMMITS
from pyhudi.spark.procedures.folders import FOLDERS
from pyhudi.spark.procedures.logs import LOGS
from pyhudi.spark.procedures.metadata import METADATA
from pyhudi.spark.procedures.procedure import REQUIRED, Argument, Invocation, Procedure, Row, bound
from pyhudi.spark.procedures.repairs import REPAIRS
from pyhudi.spark.procedures.services import SERVICES
from pyhudi.spark.procedures.slices import SLICES
from pyhudi.spark.procedures.table import TABLE_CALLS
from pyhudi.spark.procedures.undoing import UNDOING
from pyhudi.spark.session import SqlSession
from pyhudi.sql.calls import read_call
from pyhudi.sql.heads import Head

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SYNC: Final = "catalogs are not synchronised in this release; CREATE TABLE … LOCATION makes a table known"
_AUDIT: Final = "locks keep no audit; metrics tell who waited for a table"

REFUSED: Final[dict[str, str]] = {
    "hdfs_parquet_import": "INSERT INTO t SELECT * FROM parquet.`path` takes the rows; CALL run_bootstrap the files",
    **dict.fromkeys(("hive_sync", "sync_validate"), _SYNC),
    "repair_corrupted_clean_files": "an empty plan of a clean is passed over, and the next clean goes on",
    "repair_deduplicate": "rows of one key twice: read them, delete the key, and insert the one that is right",
    "repair_overwrite_hoodie_props": "a wrong fact of a table makes stored rows unreadable; options of writes are set "
                                     "by ALTER TABLE … SET TBLPROPERTIES, versions by CALL upgrade_table",
    **dict.fromkeys(("set_audit_lock", "show_audit_lock_status", "validate_audit_lock", "cleanup_audit_lock"), _AUDIT),
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
    **UNDOING,
    **SERVICES,
    **CLEANS,
    **SLICES,
    **LOGS,
    **FOLDERS,
    **METADATA,
    **BOOTSTRAP,
    **TABLE_CALLS,
    **REPAIRS,
    "help": Procedure("the procedures, or the arguments of one", (Argument("cmd"),), "result string", _help),
}


def call_procedure(session: SqlSession, head: Head) -> DataFrame:
    """`CALL [system.]name(…)`. Raises: Invalid for an unknown name, Unsupported for one that is not carried out."""
    call = read_call(head)
    procedure = _find(call.procedure)
    invocation = bound(call.procedure, procedure, call, session)
    condition = str(invocation.values.get("filter") or "").strip()
    rows = session.rows(list(procedure.run(invocation)), procedure.columns)
    return rows.where(condition) if condition else rows


def is_procedure(name: str) -> bool:
    """Whether Apache Hudi has a procedure of this name."""
    return name.lower() in PROCEDURES or name.lower() in REFUSED


def _find(name: str) -> Procedure:
    if name in REFUSED:
        raise Unsupported(f"CALL {name}: is not carried out: {REFUSED[name]}")
    if name not in PROCEDURES:
        near = nearest_name(name, [*PROCEDURES, *REFUSED])
        hint = f"; the nearest is '{near}'" if near else ""
        raise Invalid(f"CALL {name}: expected the name of a procedure, found another{hint}; CALL help lists them")
    return PROCEDURES[name]
