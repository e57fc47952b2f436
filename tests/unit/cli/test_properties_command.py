"""The command could change what it should only show, or say something else than what the table stores."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyhudi import HudiTable
from pyhudi.cli.app import app

RUNNER = CliRunner()
KEPT, CODEC = "hoodie.clean.commits.retained", "hoodie.parquet.compression.codec"


@pytest.fixture
def path(tmp_path: Path) -> str:
    where = str(tmp_path / "table")
    secret = {
        "hoodie.datasource.hive_sync.password": "hunter2",
        "hoodie.datasource.hive_sync.jdbcurl": "jdbc:hive2://me:hunter2@host:10000",
    }
    HudiTable.create(where, name="t", record_key="id", properties={CODEC: "zstd", **secret})
    return where


def run(*arguments: str, code: int = 0) -> str:
    result = RUNNER.invoke(app, ["properties", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


def test_it_shows_what_the_table_stores_but_no_secrets(path: str) -> None:
    before = dict(HudiTable.open(path).properties)
    shown = run(path)
    assert CODEC in shown
    assert "zstd" in shown
    assert "hunter2" not in shown
    assert json.loads(run(path, "--json")) == before
    assert dict(HudiTable.open(path).properties) == before


def test_it_changes_all_or_nothing(path: str) -> None:
    done = json.loads(run(path, "--set", f"{KEPT}=7", "--unset", CODEC, "--json"))
    assert done[KEPT] == "7"
    assert CODEC not in done
    assert dict(HudiTable.open(path).properties) == done

    assert "a fact of table 't'" in run(path, "--set", f"{KEPT}=8", "--set", "hoodie.table.name=u", code=2)
    assert "expected --set or --unset" in run(path, "--set", f"{KEPT}=8", "--unset", KEPT, code=2)
    assert dict(HudiTable.open(path).properties) == done


def test_the_lock_that_others_hold_is_an_option_of_the_call(path: str) -> None:
    """Else a table whose stored lock lies elsewhere could not be changed by the command."""
    lock = "hoodie.write.lock.provider"
    storage = HudiTable.open(path)._access.storage
    zookeeper = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
    stored = storage.get(".hoodie/hoodie.properties")
    storage.put(".hoodie/hoodie.properties", stored + f"{lock}={zookeeper}\n".encode())
    assert "may not send a writer there" in run(path, "--unset", lock, code=8)
    own = zookeeper.replace("Zookeeper", "FileSystem")
    assert lock not in json.loads(run(path, "--unset", lock, "--option", f"{lock}={own}", "--json"))
