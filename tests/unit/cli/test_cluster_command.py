"""The command could cluster otherwise than the call in Python, or tell that it did where it did not."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from pyhudi import HudiTable
from pyhudi.cli.app import app

RUNNER = CliRunner()


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    """Two small files in each of two partitions."""
    made = HudiTable.create(
        tmp_path / "rides", name="rides", record_key="id", partition_by="city",
        properties={"hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip
    for turn in range(2):
        ids = [f"{turn}-{n}" for n in range(4)]
        made.insert(pa.table({"id": ids, "city": ["oslo", "rome"] * 2, "fare": [4 - turn, 3, 2, turn]}))
    return made


def run(table: HudiTable, *arguments: str, code: int = 0) -> str:
    result = RUNNER.invoke(app, ["cluster", table.path, *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_it_plans_and_carries_out_and_tells_so(table: HudiTable) -> None:
    assert run(table, "--run") == "Nothing was clustered: no clustering is pending\n"
    planned = run(table, "--schedule", "--partition", "oslo", "--sort", "fare")
    assert planned.startswith("Planned as ")
    assert planned.endswith(": 2 file groups\n")
    assert "2 file groups became 1 files with 4 rows" in run(table, "--run")
    fares = table.scan(["fare"], "city = 'oslo'").to_arrow().column("fare").to_pylist()
    assert fares == sorted(fares)

    result = json.loads(run(table, "--json", "--sort", "fare,id", "--layout", "hilbert"))
    assert (result["file_groups"], result["files"], result["rows"], result["reason"]) == (3, 2, 8, "")


def test_a_plan_that_no_longer_holds_is_told(table: HudiTable) -> None:
    planned = table.schedule_clustering().requested
    allow = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    table.upsert(pa.table({"id": ["0-0"], "city": ["oslo"], "fare": [9]}), options=allow)
    assert run(table, "--run") == (
        f"Given up, as its file groups have changed: {planned}\nNothing was clustered: no clustering is pending\n"
    )


def test_a_wrong_call_is_an_error(table: HudiTable) -> None:
    assert "no column 'x'" in run(table, "--sort", "x", code=2)
    assert "expected one of linear, z-order, zorder, hilbert" in run(
        table, "--sort", "fare", "--layout", "peano", code=2
    )
    assert "'osl'" in run(table, "--partition", "osl", code=3)
    run(table, "--run", "--schedule", code=2)
