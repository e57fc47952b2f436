"""The demo could tell a user something that is not so: a repeated key, an invented delay, a deleted folder that
was not its own, or a stack trace where a sentence should be. The parts without Spark are tested here."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("rich")
pytest.importorskip("pyspark")

from rich.console import Console

from demo import flights as demo
from demo import flights_data, flights_steps, spark_session
from demo.flights_data import KEY, Flights, read_airlines, read_flights
from demo.report import Report
from pyhudi import HudiTable, WriteResult


@pytest.fixture(scope="module")
def flights() -> Flights:
    return read_flights()


def test_every_flight_is_there_under_its_own_key(flights: Flights) -> None:
    assert flights.rows.num_rows == 336_776
    assert flights.rows.group_by(list(KEY)).aggregate([]).num_rows == 336_776
    assert set(flights.rows["carrier"].to_pylist()) <= read_airlines().keys()


def test_corrections_fill_each_missing_delay_and_change_nothing_else(flights: Flights) -> None:
    old = flights.rows.filter(flights_data.lacks_delay(flights.rows))

    assert old.num_rows == flights.corrections.num_rows == 717
    assert flights.corrections["arr_delay"].null_count == 0
    assert flights.corrections.drop(["arr_delay", "updated_at"]).equals(old.drop(["arr_delay", "updated_at"]))
    assert pc.all(pc.greater(flights.corrections["updated_at"], old["updated_at"])).as_py()


def test_what_the_table_must_hold_is_the_input_without_the_deleted(flights: Flights) -> None:
    expected = flights.expected()

    assert flights.cancelled.num_rows == 61
    assert expected.num_rows == flights.rows.num_rows - 61
    assert expected.schema == flights.rows.schema


@pytest.mark.parametrize(
    "arrived,scheduled,minutes",
    [(830, 819, 11), (5, 2355, 10), (2355, 5, -10), (1200, 1200, 0), (2400, 2330, 30), (1000, 1200, -120)],
)
def test_the_delay_of_two_times_of_day(arrived: int, scheduled: int, minutes: int) -> None:
    rows = pa.table({"arr_time": [arrived], "sched_arr_time": [scheduled]})

    assert flights_data.arrival_delay(rows).to_pylist() == [minutes]


def test_the_table_of_an_earlier_run_makes_way(tmp_path: Path) -> None:
    HudiTable.create(tmp_path / "t", name=flights_steps.NAME, record_key="id")

    flights_steps.make_way(tmp_path / "t", flights_steps.NAME)
    flights_steps.make_way(tmp_path / "t", flights_steps.NAME)

    assert not (tmp_path / "t").exists()


def test_what_is_not_the_demos_stays(tmp_path: Path) -> None:
    HudiTable.create(tmp_path / "table", name="another", record_key="id")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()

    for name in ("table", "folder", "folder/file"):
        with pytest.raises(flights_steps.InTheWay, match="choose another --path"):
            flights_steps.make_way(tmp_path / name, flights_steps.NAME)
        assert (tmp_path / name).exists()


def test_a_wrong_count_is_a_mismatch() -> None:
    result = WriteResult("1", "2", "upsert", inserted=3, updated=0, deleted=0, files=1, size_bytes=1)

    flights_steps.expect_counts(result, inserted=3)
    with pytest.raises(flights_steps.Mismatch):
        flights_steps.expect_counts(result, inserted=2)


def test_without_java_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(spark_session.SparkMissing, match=r"Java 17 or newer, and there is none in JAVA_HOME"):
        spark_session.require_java()

    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_292\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    with pytest.raises(spark_session.SparkMissing, match=r"is Java 8;"):
        spark_session.require_java()


def test_a_problem_is_one_sentence_and_no_stack_trace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "WORK", tmp_path)
    monkeypatch.setattr(demo, "run", lambda path, console: 1 / 0)

    assert demo.main(["--path", str(tmp_path / "t")]) == 1

    shown = capsys.readouterr().out
    assert "ZeroDivisionError: division by zero" in shown
    assert "Traceback" not in shown
    assert "Traceback" in (tmp_path / "error.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_step_is_told_within_the_width(width: int) -> None:
    screen = io.StringIO()
    report = Report(Console(file=screen, width=width), steps=1)
    result = WriteResult("1", "2", "upsert", inserted=0, updated=717, deleted=0, files=1, size_bytes=14_700_000)

    with report.running(), report.step("upsert corrected delays") as cost:
        cost.of_write(result)

    lines = screen.getvalue().splitlines()
    assert any("upsert corrected delays" in line for line in lines)
    assert any("717" in line and "14.7" in line for line in lines)
    assert max(map(len, lines)) <= width
