"""A table's properties name classes; the texts of its rows and columns stand in statements. None of these may run."""

import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable

OFTEN = 5
CLASSES = (
    "hoodie.table.keygenerator.class",
    "hoodie.index.class",
    "hoodie.compaction.payload.class",
    "hoodie.datasource.write.payload.class",
    "hoodie.table.legacy.payload.class",
    "hoodie.record.merge.strategy.id",
    "hoodie.write.record.merge.custom.implementation.classes",
    "hoodie.datasource.write.record.merger.impls",
    "hoodie.table.keygenerator.type",
    "hoodie.datasource.write.keygenerator.class",
    "hoodie.write.lock.provider",
    "hoodie.write.lock.conflict.resolution.strategy",
    "hoodie.datasource.hive_sync.partition_extractor_class",
    "hoodie.deltastreamer.transformer.class",
    "hoodie.compaction.strategy",
    "hoodie.clustering.plan.strategy.class",
    "hoodie.clustering.execution.strategy.class",
    "hoodie.memory.spillable.map.class",
    "hoodie.write.commit.callback.class",
    "hoodie.metrics.reporter.class",
    "hoodie.bootstrap.index.class",
    "hoodie.table.base.file.format",
)


def rows(*keys: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "city": ["oslo"] * len(keys), "ts": [ts] * len(keys)})


def attempt(path: Path, options: dict[str, str] | None = None) -> None:
    for call in (
        lambda: HudiTable.open(path).scan().to_arrow(),
        lambda: HudiTable.open(path).upsert(rows("a", "b", ts=3), options=options),
        lambda: HudiTable.open(path).compact(options=options),
        lambda: HudiTable.open(path).clean(options=options),
    ):
        with suppress(HudiError):
            call()


@pytest.mark.parametrize("names", [CLASSES[:OFTEN], pytest.param(CLASSES[OFTEN:], marks=pytest.mark.long)])
def test_a_class_is_compared_and_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    """A module of the very name lies where Python looks for modules."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Payload: pass\n")
    monkeypatch.syspath_prepend(str(code))
    path = tmp_path / "t"
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.bulk_insert(rows("a"))
    table.upsert(rows("a", ts=2))
    properties = path / ".hoodie/hoodie.properties"
    before = properties.read_text()

    for name in names:
        kept = [line for line in before.splitlines() if not line.startswith((name, "hoodie.table.checksum"))]
        properties.write_text("\n".join([*kept, f"{name}=evil.Payload"]) + "\n")
        attempt(path)
        properties.write_text(before)
        attempt(path, {name: "evil.Payload"})

    assert "evil" not in sys.modules
    assert not (tmp_path / "ran").exists()
    assert HudiTable.open(path).scan().to_arrow().num_rows >= 1
