"""A table of version 9 that only we can go on with is none. Apache Hudi 1.2 and pyhudi write such tables in turns:
those that we made, and those of version 8 that it upgrades under our hands."""

from pathlib import Path

import pytest

from tests.interop.cow_rows import key_range, rows
from tests.interop.cow_tables import PLAIN, SHAPES, Shape, Shared
from tests.support.reference.client import ReferenceHudi

ONE_KEY_TWO_LEVELS = Shape(
    "one_key_two_levels",
    partition_by=("region", "city"),
    properties={"hoodie.datasource.write.partitionpath.urlencode": True},
)
"""The complex key generator with one field, whose keys name it on version 9."""

FEW = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.metadata.compact.max.delta.commits": 2,
}


@pytest.mark.parametrize("shape", [PLAIN, SHAPES[1], ONE_KEY_TWO_LEVELS], ids=lambda shape: shape.name)
def test_turns_on_a_table_of_version_9(tmp_path: Path, hudi_120: ReferenceHudi, shape: Shape) -> None:
    shared = Shared(tmp_path / "rides", shape, version=9)
    shared.bulk_insert(rows(key_range(0, 160), turn=1))
    shared.upsert(rows(key_range(100, 180, 3), turn=2))
    shared.check(hudi_120)
    for turn in (3, 4):
        shared.hudi_write(hudi_120, "upsert", rows(key_range(turn, 200, 5), turn=10 * turn), **FEW)
        shared.hudi_delete(hudi_120, key_range(20 * turn, 20 * turn + 9, 4), **FEW)
        assert shared.ours.table_version == 9
        shared.check(hudi_120)
        shared.upsert(rows(key_range(turn, 210, 4), turn=10 * turn + 1))
        shared.delete(sorted(shared.model.rows)[turn::17])
        shared.check(hudi_120)
    actions = {instant.action for instant in shared.ours.timeline()}
    assert "clean" in actions


def test_an_upgrade_by_hudi_is_noticed_and_we_go_on(tmp_path: Path, hudi_120: ReferenceHudi) -> None:
    shared = Shared(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.upsert(rows(key_range(0, 50, 3), turn=2))
    assert shared.ours.table_version == 8
    shared.hudi_write(hudi_120, "upsert", rows(key_range(5, 140, 5), turn=3))
    assert shared.ours.table_version == 9
    assert shared.ours.properties["hoodie.table.initial.version"] == "8"
    shared.check(hudi_120)
    shared.upsert(rows(key_range(0, 140, 4), turn=4))
    shared.delete(sorted(shared.model.rows)[::11])
    shared.check(hudi_120)
    shared.hudi_write(hudi_120, "upsert", rows(key_range(5, 140, 5), turn=5))
    shared.check(hudi_120)
