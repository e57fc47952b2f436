"""What is measured of one kind of table, step by step."""

from __future__ import annotations

from dataclasses import dataclass

BULK_INSERT = "bulk insert"
UPSERT = "upsert 10 %"
UPSERT_FEW = "upsert 1,000 rows"
SCAN = "full scan"
AGGREGATE = "aggregate"
COMPACTION = "compaction"
WRITES = (BULK_INSERT, UPSERT, UPSERT_FEW)
READS = (SCAN, AGGREGATE)


@dataclass(frozen=True, slots=True)
class Workload:
    """The steps upon one table, in order, and what the table is. `index`: of Apache Hudi and pyhudi."""

    key: str
    steps: tuple[str, ...]
    table_type: str
    index: str
    buckets: int = 4

    @property
    def properties(self) -> dict[str, str]:
        """What both Hudi sides are told of their table."""
        properties = {"hoodie.index.type": self.index}
        if self.index == "BUCKET":
            properties |= {"hoodie.bucket.index.num.buckets": str(self.buckets)}
        return properties

    def __str__(self) -> str:
        return f"{self.table_type.lower().replace('_', '-')}, {self.index} index"


_ON_LOGS = (BULK_INSERT, UPSERT, AGGREGATE, SCAN, UPSERT_FEW, COMPACTION)

WORKLOADS = {
    of.key: of
    for of in (
        Workload("cow", (BULK_INSERT, UPSERT, UPSERT_FEW, SCAN, AGGREGATE), "COPY_ON_WRITE", "SIMPLE"),
        Workload("mor", _ON_LOGS, "MERGE_ON_READ", "SIMPLE"),
        Workload("mor-bucket", _ON_LOGS, "MERGE_ON_READ", "BUCKET"),
    )
}
