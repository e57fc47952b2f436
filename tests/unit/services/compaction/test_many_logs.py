"""The logs of a table could grow for ever, and nobody would hear of it; or one that is well kept be complained of."""

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.services.compaction import many_logs


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_logs, "LOGS_MANY", 3)
    monkeypatch.setattr(many_logs, "COMMITS_MANY", 4)


def table_with_logs(path: Path, count: int, options: dict[str, str]) -> HudiTable:
    rows = pa.table({"id": ["a"], "ts": [1]})
    table = HudiTable.create(path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    table.bulk_insert(rows)
    for _ in range(count):
        table.upsert(rows, options=options)
    return table


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [of.getMessage() for of in caplog.records if "logs" in of.getMessage() and of.levelno == logging.WARNING]


def test_a_query_of_a_slice_with_many_logs_tells_once_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_with_logs(tmp_path / "t", 2, {})
    table.scan()
    assert told(caplog) == []

    table.upsert(pa.table({"id": ["a"], "ts": [2]}))
    table.scan(query="read_optimized")
    assert told(caplog) == []
    table.scan()
    HudiTable.open(tmp_path / "t").scan()

    (message,) = told(caplog)
    assert "has 3 logs" in message
    assert "compact()" in message
    assert "hoodie.compact.inline=true" in message


@pytest.mark.parametrize("options, is_told", [({}, True), ({"hoodie.compact.inline": "true"}, False)])
def test_a_writer_whose_logs_nothing_compacts_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, str], is_told: bool
) -> None:
    table_with_logs(tmp_path / "t", 6, options)

    assert len(told(caplog)) == is_told
