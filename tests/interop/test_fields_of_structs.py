"""A row keyed, placed or ordered by fields of a struct could get another key, folder or order than Apache Hudi has.

pyhudi and the real Apache Hudi write the same table in turns, whoever made it, beside a dict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

RELEASES = (("hudi_0150", 6), ("hudi_102", 8), ("hudi_120", 9))
CASES: dict[str, dict[str, str]] = {
    "one": {"hoodie.datasource.write.recordkey.field": "st.x"},
    "hive": {
        "hoodie.datasource.write.recordkey.field": "st.x",
        "hoodie.datasource.write.partitionpath.field": "st.p",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    },
    "composite": {
        "hoodie.datasource.write.recordkey.field": "st.x,v",
        "hoodie.datasource.write.partitionpath.field": "st.p,st.day",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    },
}


def rows(numbers: range, ts: int, said: str) -> pa.Table:
    inner = [{"x": f"k{n}", "p": f"p{n % 3}", "day": f"2024-01-0{1 + n % 2}", "ts": ts + n % 2} for n in numbers]
    return pa.table({"st": inner, "v": list(numbers), "said": [said] * len(numbers)})


@pytest.mark.parametrize("made_by", ["us", "them"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("release, version", RELEASES)
def test_both_go_by_the_same_fields(
    request: pytest.FixtureRequest, tmp_path: Path, release: str, version: int, table_type: str, case: str, made_by: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(release)
    path, stated = tmp_path / "t", CASES[case]
    ordering = "hoodie.table.ordering.fields" if version == 9 else "hoodie.datasource.write.precombine.field"
    options: dict[str, Any] = {**stated, ordering: "st.ts", "hoodie.datasource.write.table.type": table_type}
    if version > 6:
        options["hoodie.write.table.version"] = str(version)
    else:
        options["hoodie.datasource.write.payload.class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    model: dict[int, tuple[int, str]] = {}

    if made_by == "us":
        partition = stated.get("hoodie.datasource.write.partitionpath.field")
        HudiTable.create(
            path, name="t", record_key=stated["hoodie.datasource.write.recordkey.field"].split(","),
            partition_by=partition.split(",") if partition else None, ordering="st.ts", table_type=table_type,
            table_version=version, properties={k: v for k, v in stated.items() if "field" not in k},
        )  # fmt: skip

    def write(side: str, numbers: range, ts: int, said: str) -> None:
        given = rows(numbers, ts, said)
        if side == "us":
            HudiTable.open(path).upsert(given)
        else:
            hudi.write(path, given, operation="upsert", **options)
        for row in given.to_pylist():
            if row["v"] not in model or model[row["v"]][0] <= row["st"]["ts"]:
                model[row["v"]] = (row["st"]["ts"], said)
        check()

    def check() -> None:
        found = HudiTable.open(path).scan().to_arrow()
        assert {row["v"]: (row["st"]["ts"], row["said"]) for row in found.to_pylist()} == model
        assert len(found) == len(model)
        theirs = hudi.read(path)  # 0.15.0 shows `p` of a copy-on-write table once more, as a column of its own
        assert_same_rows(found, theirs.drop_columns([name for name in theirs.column_names if name in ("p", "day")]))

    other = "them" if made_by == "us" else "us"
    write(made_by, range(20), 10, "first")
    write(other, range(10, 30), 9, "less, of half of the stored ones")
    write(made_by, range(25, 40), 12, "greater")
    write(other, range(30, 45), 11, "less again")

    HudiTable.open(path).delete(rows(range(3), 99, ""))
    hudi.write(path, rows(range(3, 6), 99, ""), operation="delete", **options)
    for number in range(6):
        del model[number]
    check()
    if table_type == "MERGE_ON_READ":
        HudiTable.open(path).compact()
        check()
    write(other, range(40, 50), 20, "last")
    assert HudiTable.open(path).metadata.validate().differences == ()
