"""A row that is written while a compaction is pending could be lost to later look-ups, and come to lie there twice."""

from collections.abc import Callable

import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, arrow, read_rows

ONLY_LOGS = {"hoodie.parquet.small.file.limit": "0"}
RUN_PENDING = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "100"}
"""What follows a write: the compaction that is pending, and no other."""

ROWS = [Row(f"k{n}", "oslo", 1, n) for n in range(4)]


def delete(table: HudiTable) -> None:
    table.delete(arrow(ROWS[:1], ["id", "city"]))


def plan(table: HudiTable) -> None:
    assert table.schedule_compaction().requested is not None


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("steps", [(delete, plan), (plan, delete)], ids=["deleted, planned", "planned, deleted"])
def test_a_deleted_key_that_comes_back_is_found_after_the_compaction(
    steps: tuple[Callable[[HudiTable], None], ...], index: str
) -> None:
    table = Handles(MemoryStorage()).create(
        table_type="MERGE_ON_READ", properties={**ONLY_LOGS, "hoodie.index.type": index}
    )
    table.bulk_insert(arrow(ROWS))
    table.upsert(arrow([Row("k1", "oslo", 2, 10)]))
    for step in steps:
        step(table)

    table.upsert(arrow([Row("k0", "oslo", 3, 20)]))
    table.upsert(arrow([Row("k3", "oslo", 3, 30)]), options=RUN_PENDING)
    assert [i.action for i in table.timeline() if not i.completed] == []
    table.upsert(arrow([Row("k0", "oslo", 4, 40)]))

    found = {key[1]: of.row.v for key, of in read_rows(table.scan().to_arrow()).items()}
    assert found == {"k0": 40, "k1": 10, "k2": 2, "k3": 30}
