"""What holds for two turns could break in ten: archives, compactions of the metadata table and cleans of both writers
come between them, and each works on what the other left."""

from pathlib import Path

import pytest

from tests.interop.cow_rows import key_range, rows
from tests.interop.cow_tables import Shape, Shared
from tests.support.reference.client import ReferenceHudi

TURNS = 10
FEW = {
    "hoodie.clean.commits.retained": 2,
    "hoodie.keep.min.commits": 4,
    "hoodie.keep.max.commits": 5,
    "hoodie.metadata.compact.max.delta.commits": 3,
    "hoodie.timeline.compaction.batch.size": 3,
}
STAYS = {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 8}


@pytest.mark.parametrize(
    "name, version, options",
    [("hudi_102", 8, {}), ("hudi_120", 9, {}), ("hudi_120", 8, STAYS)],
    ids=["1.0.2 on version 8", "1.2.0 on version 9", "1.2.0 on version 8"],
)
def test_ten_turns(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, object]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = Shared(tmp_path / "rides", Shape("ten turns", properties=FEW), version=version)
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    archived: dict[str, set[str]] = {"pyhudi": set(), "hudi": set()}
    compacted: dict[str, set[str]] = {"pyhudi": set(), "hudi": set()}
    cleaned: dict[str, set[str]] = {"pyhudi": set(), "hudi": set()}
    gone, bases, cleans = set[str](), set[str](), set[str]()

    def note(who: str) -> None:
        nonlocal gone, bases, cleans
        now = shared.archived()
        assert gone <= now, "an archived instant is gone"
        archived[who] |= now - gone
        gone = now
        names = {of.format() for of in shared.metadata_compactions()}
        compacted[who] |= names - bases
        bases |= names
        done = {i.requested for i in shared.ours.timeline(history=True) if i.action == "clean"}
        cleaned[who] |= done - cleans
        cleans |= done

    for turn in range(2, 2 + TURNS):
        fresh = key_range(1_000 * turn, 1_000 * turn + 12)
        shared.upsert(rows([*key_range(turn, 120, 7), *fresh], turn=10 * turn))
        shared.delete(fresh[:3])
        note("pyhudi")
        shared.hudi_write(hudi, "upsert", rows(key_range(turn + 2, 140, 9), turn=10 * turn + 1), **FEW, **options)
        shared.hudi_delete(hudi, fresh[3:6], **FEW, **options)
        note("hudi")
        shared.check_ours()
        if turn % 3 == 0:
            shared.check(hudi)
    shared.check(hudi)
    assert shared.ours.table_version == version
    for what in (archived, compacted, cleaned):
        assert all(what.values()), f"expected each of {{archive, compaction, clean}} by both, found {what}"
