"""The commands could go to another version than they are told, or tell that they did where they did not."""

import json
from pathlib import Path

import pyarrow as pa
from typer.testing import CliRunner

from pyhudi import HudiTable
from pyhudi.cli.app import app


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_a_table_goes_up_and_down_and_says_so(tmp_path: Path) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", table_version=6, properties={"hoodie.metadata.enable": "false"}
    )
    table.insert(pa.table({"id": ["a"]}))

    told = run("upgrade", table.path, "--to", "8", "--dry-run")
    assert "copy 1 instants of the timeline" in told
    assert told.endswith("Nothing was changed: version 6 would become 8\n")
    assert table.table_version == 6

    assert run("upgrade", table.path).endswith("Version 6 is 9 now\n")
    assert run("upgrade", table.path) == "Nothing was changed: the table has version 9\n"
    result = json.loads(run("downgrade", table.path, "--to", "8", "--json"))
    assert (result["before"], result["after"], result["is_dry_run"]) == (9, 8, False)
    assert table.table_version == 8
    assert table.scan().count() == 1

    assert "expected one of the numbers 5, 6, 7, 8, 9" in run("upgrade", table.path, "--to", "4", code=2)
    assert "call upgrade" in run("downgrade", table.path, "--to", "9", code=2)
    run("downgrade", table.path, code=2)
    run("upgrade", str(tmp_path / "nothing"), code=3)
