"""A metadata table whose logs were compacted into one reads wrongly where a reader takes both the sources and what they
became, or neither. Here pyhudi and the real Apache Hudi log compact the metadata table of one table in turns, and each
reads by its indexes after the other."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.local import LocalStorage
from tests.interop.indexed_tables import EVERY, OF_VERSION_6, Indexed, rows
from tests.support.reference.client import ReferenceHudi

LOG_COMPACTS = {
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.log.compaction.blocks.threshold": "3",
    # 1.0.2 adds the sources' statistics to what they became when it compacts after a log compaction, its own too.
    "hoodie.metadata.compact.max.delta.commits": "60",
}
FILTERS = [
    "v > 2050", "v < 20 AND city = 'oslo'", "part < 2.5", "number IS NULL", "name IS NULL", "name = 'n1-3'",
    "id = 'k0007'", "id IN ('k0001', 'k0055', 'nix')",
]  # fmt: skip


class Logged(Indexed):
    @property
    def log_compactions(self) -> frozenset[str]:
        return open_metadata_table(LocalStorage(str(self.path)), UTC).timeline.log_compactions

    def check_both(self, hudi: ReferenceHudi) -> None:
        """1.0.2 counts the values of a file, and its nulls, twice where it makes statistics of what a log compaction
        left, its own or ours: that misleads nobody.
        """
        if hudi.version == "1.0.2":
            assert self.ours.metadata.validate().differences == ()
            self.check_answers(hudi, FILTERS)
        else:
            self.check(hudi, FILTERS)


@pytest.mark.parametrize(
    "name, version",
    [("hudi_120", 9), ("hudi_102", 8), ("hudi_0150", 6)],
    ids=["1.2.0 on 9", "1.0.2 on 8", "0.15.0 on 6"],
)
def test_both_log_compact_one_metadata_table_and_read_it(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    every = EVERY if version >= 8 else OF_VERSION_6
    table = Logged(tmp_path / "rides", "MERGE_ON_READ", version)
    table.options |= LOG_COMPACTS
    table.create()
    for turn in range(1, 6):
        table.upsert(rows(range(turn, 40 + turn, turn), turn=turn, mark="-"))
    table.delete(range(30, 33))
    ours = table.log_compactions
    assert ours
    assert table.partitions == every
    table.check(hudi, FILTERS)

    for turn in range(6, 9):
        table.hudi_upsert(hudi, rows(range(turn, 60, turn), turn=turn, mark="-"))
    table.hudi_delete(hudi, range(12, 14))
    theirs = table.log_compactions - ours
    assert theirs
    assert table.partitions == every
    table.check_both(hudi)

    for turn in range(10, 14):
        table.upsert(rows(range(turn, 70, turn), turn=turn, mark="-"))
    assert table.log_compactions - ours - theirs
    assert table.partitions == every
    table.check_both(hudi)
    if version == 9:
        compacted = table.ours.metadata.stats().deltacommits_since_compaction
        table.hudi_upsert(hudi, rows(range(3), turn=20, mark="-"), **{"hoodie.metadata.compact.max.delta.commits": "1"})
        assert table.ours.metadata.stats().deltacommits_since_compaction < compacted
        table.check(hudi, FILTERS)
