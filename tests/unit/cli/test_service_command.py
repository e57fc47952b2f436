"""The command could go on after a signal, leave a torn status, end with a status that it cannot write, or end well
although a service failed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyhudi import HudiTable
from pyhudi.cli.app import app
from pyhudi.metrics import Event, subscribe
from tests.support.model import Row, arrow

RUNNER = CliRunner()


def a_table(path: Path) -> HudiTable:
    """A merge-on-read table of six writes after which no service ran."""
    table = HudiTable.create(path, name="t", record_key="id", partition_by="city", table_type="MERGE_ON_READ")
    for turn in range(6):
        table.upsert(arrow([Row("k0", "oslo", turn, turn)]))
    return table


def run(*arguments: str, code: int = 0) -> str:
    result = RUNNER.invoke(app, ["service", *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


def test_a_dry_run_shows_what_is_due_and_one_round_does_it(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    shown = run(str(tmp_path / "t"), "--dry-run")
    assert "enough delta commits since the last compaction" in shown
    assert "no indexing is pending" in shown
    assert not any(instant.action == "compaction" for instant in table.timeline())

    status = tmp_path / "status.json"
    done = run(str(tmp_path / "t"), "--once", "--only", "compaction", "--status", str(status))
    compacted = next(instant.requested for instant in table.timeline() if instant.action == "commit")
    assert f"compaction done as {compacted}: enough delta commits" in done
    kept = json.loads(status.read_text())
    assert kept["tables"][str(tmp_path / "t")]["compaction"]["requested"] == compacted
    assert sorted(file.name for file in tmp_path.iterdir()) == ["status.json", "t"]

    document = json.loads(run(str(tmp_path / "t"), "--once", "--json"))
    assert document["tables"][str(tmp_path / "t")]["compaction"]["state"] == "idle"


def test_bad_arguments_and_failed_services_have_exit_codes(tmp_path: Path) -> None:
    a_table(tmp_path / "t")
    assert "found 'vacuum'" in run(str(tmp_path / "t"), "--once", "--only", "vacuum", code=2)
    run(str(tmp_path / "none"), "--once", code=3)
    nowhere = str(tmp_path / "missing" / "status.json")
    assert "expected its folder to exist" in run(str(tmp_path / "t"), "--once", "--status", nowhere, code=2)
    assert not any(instant.action == "compaction" for instant in HudiTable.open(tmp_path / "t").timeline())

    for plan in (tmp_path / "t" / "oslo").glob(".*log*"):
        plan.write_bytes(b"no log")
    assert "compaction failed" in run(str(tmp_path / "t"), "--once", "--only", "compaction", code=1)


def test_a_signal_ends_it(tmp_path: Path) -> None:
    a_table(tmp_path / "t")
    status = tmp_path / "status.json"
    command = [sys.executable, "-m", "pyhudi.cli", "service", str(tmp_path / "t"), "--status", str(status)]
    process = subprocess.Popen([*command, "--interval", "300"], stdout=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 60
        while not (status.exists() and json.loads(status.read_text())["process"] == process.pid):
            assert time.monotonic() < end, "it never began"
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()

    assert process.returncode == 0
    assert "compaction" in output
    assert all(instant.is_completed for instant in HudiTable.open(tmp_path / "t").timeline())


def test_a_status_file_that_cannot_be_written_is_refused_before_the_start(tmp_path: Path) -> None:
    a_table(tmp_path / "t")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())

    for place, found in {
        tmp_path: "found a folder",
        tmp_path / "pipe": "found something else there",
        tmp_path / "missing" / "status.json": "found none",
        tmp_path / ("x" * 300): "File name too long",
    }.items():
        shown = run(str(tmp_path / "t"), "--once", "--status", str(place), code=2)
        assert "Invalid: --status" in shown
        assert found in shown

    assert sorted(tmp_path.iterdir()) == before
    assert not any(instant.action == "compaction" for instant in HudiTable.open(tmp_path / "t").timeline())


def test_a_status_file_that_can_no_longer_be_written_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a_table(tmp_path / "t")
    (tmp_path / "kept").mkdir()

    def take_folder_away(_: Event) -> None:
        if (tmp_path / "kept").exists():
            (tmp_path / "kept").rename(tmp_path / "gone")

    end = subscribe(take_folder_away)
    try:
        done = run(str(tmp_path / "t"), "--once", "--status", str(tmp_path / "kept" / "status.json"))
    finally:
        end()

    assert "compaction done" in done
    assert [one.levelname for one in caplog.records] == ["WARNING"], "one of many rounds is enough"
    assert f"--status {tmp_path}/kept/status.json failed, and is tried again" in caplog.text


def test_the_status_file_can_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    a_table(tmp_path / "t")
    (tmp_path / "link").symlink_to(tmp_path / "aim.json")
    for umask, mode in {0o022: 0o644, 0o027: 0o640}.items():
        before = os.umask(umask)
        try:
            run(str(tmp_path / "t"), "--once", "--status", str(tmp_path / "link"))
        finally:
            os.umask(before)
        assert (tmp_path / "aim.json").stat().st_mode & 0o777 == mode
    assert (tmp_path / "link").is_symlink()
