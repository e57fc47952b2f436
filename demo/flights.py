"""A year of real flights through a Hudi table: loaded, grown, corrected, asked. `make demo` runs it."""

import argparse
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

try:
    from rich.console import Console

    from demo import board_steps
    from demo import flights_steps as steps
    from demo.flights_data import DataMissing, Flights, read_flights
    from demo.report import Report
    from demo.spark_session import SparkMissing, spark_session
except ModuleNotFoundError as missing:
    raise SystemExit(f"The demo needs the package {missing.name}; `make demo` installs what it needs.") from None

import pyhudi.spark
from pyhudi import HudiError

WORK = Path("build/demo")
EXPECTED_PROBLEMS = (DataMissing, SparkMissing, steps.InTheWay, steps.Mismatch, HudiError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo. Returns the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m demo.flights", description=__doc__)
    parser.add_argument("--path", type=Path, default=WORK / "flights", help="the table, made anew (%(default)s)")
    path = parser.parse_args(arguments).path
    console = Console()
    try:
        run(path, console)
        return 0
    except KeyboardInterrupt:
        problem = "Stopped. The next run begins anew."
    except EXPECTED_PROBLEMS as error:
        problem = f"{type(error).__name__}: {error}"
    except Exception as error:
        WORK.mkdir(parents=True, exist_ok=True)
        log = WORK / "error.log"
        log.write_text(traceback.format_exc(), encoding="utf-8")
        lines = [line for line in str(error).splitlines() if line.strip()]
        told = " ... ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))  # Spark's errors end with what went wrong
        problem = f"{type(error).__name__}: {told} (the whole text is in {log})"
    console.print(problem, style="red", highlight=False, markup=False)
    return 1


def run(path: Path, console: Console) -> None:
    """Every step, then the answers, then where the table lies."""
    start = time.perf_counter()
    board_path = path.with_name(f"{path.name}-board")
    steps.make_way(path, steps.NAME)
    steps.make_way(board_path, board_steps.NAME)
    report = Report(console, steps.STEPS + board_steps.STEPS)
    report.say(
        "A year of flights out of New York City, into a copy-on-write table; then December's departures board, "
        "merge-on-read.\n"
    )
    answers: list[steps.Answer] = []
    with ExitStack() as stack:
        stack.enter_context(report.running())
        with report.step("read the flights"):
            flights = read_flights()
            steps.stage(flights, WORK / "input")
        with report.step("start Spark"):
            spark = stack.enter_context(spark_session(WORK))
            pyhudi.spark.register(spark)
        written = steps.write_all(report, spark, flights, WORK / "input", path)
        with report.step("snapshot query"):
            answers.append(steps.snapshot_query(spark, flights, path))
        with report.step("time-travel query"):
            answers.append(steps.time_travel_query(spark, flights, written, path))
        with report.step("incremental query"):
            answers.append(steps.incremental_query(spark, flights, written, path))
        with report.step("check, without Spark"):
            steps.check_table(written.table, flights)
        answers += board_steps.run_board(report, spark, flights, board_path).answers()
    for title, columns, rows in answers:
        report.table(title, columns, rows)
    say_what_was_shown(report, flights, path, time.perf_counter() - start)


def say_what_was_shown(report: Report, flights: Flights, path: Path, seconds: float) -> None:
    size_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    report.say(
        f"\nThe table holds the {flights.expected().num_rows:,} flights that it should: every row and column was "
        f"compared with the input. {seconds:.0f} seconds in all.\n"
    )
    report.say(f"It lies in {path} ({size_bytes / 1e6:.0f} MB with the files of earlier commits), the board beside it.")
    report.say("To look at it:\n")
    report.code(LOOK.format(path=path))
    report.say(
        "That needs no Spark. With Spark: pyhudi.spark.register(spark), then "
        f"spark.read.format('hudi').load('{path}'). Apache Hudi reads the same table."
    )


LOOK = """\
from pyhudi import HudiTable
table = HudiTable.open("{path}")
for instant in table.timeline():
    print(instant)
late = table.scan(["carrier", "flight", "dest", "arr_delay"], where="month = 12 and arr_delay > 600")
print(late.explain())
print(late.to_pandas())
"""


if __name__ == "__main__":
    raise SystemExit(main())
