"""The command could delete where it should only show, or say something else than what was deleted."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyhudi import HudiTable
from pyhudi.cli.app import app
from tests.support.model import Row, StepClock, arrow

RUNNER = CliRunner()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table whose partition `oslo` was written to ten days ago, and `rome` now."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    where = str(tmp_path / "table")
    clock = StepClock(now_ms - 10 * 86_400_000)
    table = HudiTable.create(where, name="t", record_key="id", partition_by="city", clock=clock)
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    clock.ms = now_ms - 60_000
    table.upsert(arrow([Row("b", "rome", 1, 1)]))
    return where


def cities(path: str) -> list[str]:
    return sorted(HudiTable.open(path).scan().to_arrow().column("city").to_pylist())


def run(*arguments: str, code: int = 0) -> str:
    result = RUNNER.invoke(app, ["expire", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


def test_a_dry_run_shows_and_the_command_deletes(path: str) -> None:
    shown = run(path, "--days", "7", "--dry-run")
    assert "Would be deleted" in shown
    assert "oslo" in shown
    assert "rome" not in shown
    assert "Nothing was deleted: a dry run deletes nothing" in shown
    assert cities(path) == ["oslo", "rome"]

    done = json.loads(run(path, "--days", "7", "--json"))
    assert [one["partition"] for one in done["expired"]] == ["oslo"]
    assert done["requested"] == HudiTable.open(path).timeline()[-1].requested
    assert cities(path) == ["rome"]
    assert "Nothing was deleted: no partition is older: 7 days are kept" in run(path, "--days", "7")


def test_options_choose_and_what_stays_is_told(path: str) -> None:
    none = "hoodie.partition.ttl.strategy.max.delete.partitions=0"
    assert "one run deletes at most 0" in run(path, "--days", "7", "--option", none)
    assert "hoodie.partition.ttl.strategy.days.retain is not set" in run(path)
    assert cities(path) == ["oslo", "rome"]


def test_a_bad_option_is_an_error(path: str) -> None:
    assert "days.retain" in run(path, "--option", "hoodie.partition.ttl.strategy.days.retain=x", code=2)
    run(path, "--days", "0", code=2)
