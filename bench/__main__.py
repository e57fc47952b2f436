"""`python -m bench`: measure pyhudi beside plain Parquet, Apache Hudi, Delta, Iceberg, deltalake and hudi-rs.

The first call makes what is needed: the reference environment (a few minutes) and the input files.
Writes `build/bench/figures-<workload>.md` and `.json`. Ends with 1 when a side failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from bench import in_process, on_spark, report
from bench.data import make_input
from bench.workload import WORKLOADS, Workload
from tests.support.reference.environment import PROJECT

OUTPUT = PROJECT / "build" / "bench"


def main() -> int:
    arguments, workload, sides = _asked()
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - started:6.0f} s] {text}", file=sys.stderr, flush=True)

    OUTPUT.mkdir(parents=True, exist_ok=True)
    say("input files")
    data = make_input(OUTPUT, rows=arguments.rows)
    warm_up = make_input(OUTPUT, rows=arguments.warm_up_rows or arguments.rows)
    texts: list[str] = []
    failures: dict[str, str] = {}
    spark = processes = None
    if not (arguments.no_process or arguments.cluster):
        processes = in_process.run(data, OUTPUT, workload=workload, rounds=arguments.rounds, say=say)
        failures |= processes.failures
    if sides:
        spark = on_spark.run(
            data, OUTPUT, warm_up=warm_up, workload=workload, sides=sides, rounds=arguments.rounds,
            readings=arguments.readings, on_cluster=arguments.cluster, say=say,
        )  # fmt: skip
        texts.append(
            report.format_spark(
                spark,
                data,
                workload,
                warm_up=warm_up,
                rounds=arguments.rounds,
                readings=arguments.readings,
                on_cluster=arguments.cluster,
            )
        )
        failures |= spark.failures
    if processes is not None:
        texts.append(report.format_in_process(processes, data, workload, rounds=arguments.rounds))
    stem = f"figures-{workload.key}" + ("-cluster" if arguments.cluster else "")
    (OUTPUT / f"{stem}.md").write_text("\n".join(texts))
    values = report.describe_results(spark, processes, data, rounds=arguments.rounds)
    (OUTPUT / f"{stem}.json").write_text(json.dumps(values, indent=2) + "\n")
    print("\n".join(texts))
    for name, reason in failures.items():
        print(f"FAILED {name}: {reason}", file=sys.stderr)
    return 1 if failures else 0


def _asked() -> tuple[argparse.Namespace, Workload, list[on_spark.Side]]:
    """What the command asks for: its arguments, and the workload and sides that they name."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the bulk insert (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (%(default)s)")
    parser.add_argument(
        "--readings", type=int, default=1, help="readings of a scan or aggregate, whose median counts (%(default)s)"
    )
    parser.add_argument(
        "--warm-up-rows", type=int, default=None, help="rows of Spark's round that does not count (as --rows)"
    )
    parser.add_argument(
        "--sides",
        default=None,
        help=f"sides on Spark, comma-separated, of: {','.join(on_spark.SIDES_BY_KEY)}; or none (all that do each step)",
    )
    parser.add_argument(
        "--workload", default="cow", choices=WORKLOADS, help="kind of table and its index (%(default)s)"
    )
    parser.add_argument(
        "--cluster", action="store_true", help="on a standalone Spark of two workers, without the sides without Spark"
    )
    parser.add_argument("--no-process", action="store_true", help="leave out the sides without Spark")
    arguments = parser.parse_args()
    try:
        workload = WORKLOADS[arguments.workload]
        chosen = arguments.sides or ",".join(on_spark.sides_of(workload))
        sides = [on_spark.SIDES_BY_KEY[key] for key in chosen.split(",") if chosen != "none"]
    except KeyError as unknown:
        parser.error(f"no side {unknown}; there are {', '.join(on_spark.SIDES_BY_KEY)}")
    return arguments, workload, sides


if __name__ == "__main__":
    sys.exit(main())
