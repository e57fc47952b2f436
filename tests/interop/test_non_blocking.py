"""Apache Hudi and pyhudi append to the same buckets at the same moment, both without blocking.

No commit may fail, none may be lost, and each bucket must be one file group, whoever opened it. Then each side compacts
what both wrote, and the other reads and writes on.
"""

import threading
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from tests.interop.test_two_at_once import LOCK, SERVICES, THEIRS, Rows, as_table, batch_of, newest, rows_of
from tests.support.reference.client import ReferenceHudi

COMMITS = 8
MODE = "NON_BLOCKING_CONCURRENCY_CONTROL"
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": 2,
    "hoodie.bucket.index.hash.field": "id",
}
OURS = {**LOCK, "hoodie.write.concurrency.mode": MODE, "hoodie.write.num.retries.on.conflict.failures": 0}


@pytest.mark.parametrize(
    "name, version, options",
    [
        ("hudi_120", 9, {"hoodie.write.auto.upgrade": False}),
        ("hudi_102", 8, {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 8}),
    ],
    ids=["1.2.0 on version 9", "1.0.2 on version 8"],
)
def test_both_append_to_the_same_buckets_at_once(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, object]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "rides"
    properties = {**SERVICES, **BUCKETS}
    table = HudiTable.create(
        path, name="rides", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        table_version=version, properties=properties,
    )  # fmt: skip
    stated: dict[str, Any] = {
        "hoodie.table.name": "rides", "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city", "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ", **LOCK, **THEIRS, **properties, **options,
        "hoodie.write.concurrency.mode": MODE, "hoodie.compact.inline": False,
    }  # fmt: skip
    done: dict[str, list[Rows]] = {"pyhudi": [], "hudi": []}
    errors: list[BaseException] = []

    def ours(number: int) -> None:
        HudiTable.open(path, options=OURS).upsert(as_table(batch_of("pyhudi", number)))

    def theirs(number: int) -> None:
        hudi.write(path, as_table(batch_of("hudi", number)), operation="upsert", **stated)

    def run(who: str) -> None:
        try:
            for number in range(COMMITS):
                (ours if who == "pyhudi" else theirs)(number)
                done[who].append(batch_of(who, number))
        except BaseException as error:  # told by the test
            errors.append(error)

    def expect(*more: Rows) -> None:
        expected = newest([*done["pyhudi"], *done["hudi"], *more])
        assert rows_of(table.scan().to_arrow()) == expected
        assert rows_of(hudi.read(path)) == expected
        assert rows_of(hudi.read(path, **{"hoodie.metadata.enable": False})) == expected
        assert table.metadata.validate().is_valid

    threads = [threading.Thread(target=run, args=(who,)) for who in done]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []

    groups = {(log.parent.name, log.name.partition("_")[0]) for log in path.glob("*/.0*.log.*")}
    buckets = [f".0000000{bucket}-0000-0000-0000-000000000000-0" for bucket in (0, 1)]
    assert groups == {(city, bucket) for city in ("oslo", "rome") for bucket in buckets}
    expect()

    assert HudiTable.open(path, options=OURS).compact().requested
    expect()
    theirs(40)
    ours(40)
    both = batch_of("hudi", 40), batch_of("pyhudi", 40)
    expect(*both)

    compacting = {**stated, "hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    hudi.write(path, as_table(batch_of("hudi", 41)), operation="upsert", **compacting)
    assert "commit" in {instant.action for instant in table.timeline() if instant.is_completed}
    expect(*both, batch_of("hudi", 41))
    ours(42)
    expect(*both, batch_of("hudi", 41), batch_of("pyhudi", 42))
