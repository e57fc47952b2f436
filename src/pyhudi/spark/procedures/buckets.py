"""The procedure about the numbers of buckets that partitions have."""

from __future__ import annotations

from typing import Final

from pyhudi.errors import Invalid
from pyhudi.spark.procedures.procedure import PATH, TABLE, Argument, Invocation, Procedure, Row, flag, number


def _manage(call: Invocation) -> list[Row]:
    asked = [name for name in ("overwrite", "add", "rollback", "show_config") if call[name]]
    if len(asked) != 1:
        found = " and ".join(asked) or "none of them"
        raise Invalid(f"CALL {call.procedure}: expected one of overwrite, add, rollback and show_config, found {found}")
    if str(call["rule"]).lower() != "regex":
        raise Invalid(f"CALL {call.procedure}: rule => '{call['rule']}': expected 'regex', the only kind there is")

    table = call.table
    known = table.bucket_rules()
    if asked == ["show_config"]:
        if known is None:
            raise Invalid(f"CALL {call.procedure}: table '{table.name}' has no rules for its partitions' buckets")
        details = (
            f"PartitionBucketIndexHashingConfig(expressions={known.expressions}, "
            f"defaultBucketNumber={known.default}, rule=regex, version=1, instant={known.instant})"
        )
        return [("SUCCESS", "SHOW_CONFIG", details)]
    if asked == ["rollback"]:
        done = table.rollback(str(call["rollback"]))
        return [("SUCCESS", "ROLLBACK", f"Rolled back bucket rescale action: {done.rolled_back}")]

    rules = str(call[asked[0]])
    if asked == ["add"] and known is not None:
        rules = f"{rules};{known.expressions}"
    count = int(call["bucket_number"])
    result = table.rescale_buckets(
        rules, default=count if count > 0 else None, options=call.options(), dry_run=bool(call["dry_run"])
    )
    if call["dry_run"]:
        lines = "".join(f"{path} => {after}\n" for path, (_, after) in result.partitions.items())
        return [("SUCCESS", "DRY_RUN_OVERWRITE", f"\n{lines}")]
    now = table.bucket_rules()
    assert now is not None
    return [("SUCCESS", "OVERWRITE", f"Expression: {now.expressions}, Bucket Number: {now.default}, Dry Run: false")]


BUCKETS: Final = {
    "partition_bucket_index_manager": Procedure(
        "give partitions other numbers of buckets",
        (
            TABLE, Argument("overwrite"), number("bucket_number", -1), Argument("add"), flag("dry_run", True),
            Argument("rollback"), flag("show_config"), Argument("rule", "regex"), Argument("options"), PATH,
        ),
        "result string, operation string, details string", _manage,
    ),
}  # fmt: skip
"""Seen: Apache Hudi 1.2.0 has these arguments and columns."""
