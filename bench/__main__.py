"""`python -m bench`: measure pyhudi beside plain Parquet and Apache Hudi.

The first call makes what is needed: the reference environment (a few minutes) and the input files.
Writes `build/bench/bulk_and_upsert.md` and `.json`. Ends with 1 when a side failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from bench import bulk_and_upsert, report
from bench.data import describe_input, make_input
from tests.support.reference.environment import PROJECT

OUTPUT = PROJECT / "build" / "bench"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the bulk insert (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (%(default)s)")
    parser.add_argument(
        "--warm-up-rows", type=int, default=None, help="rows of the round that does not count (as --rows)"
    )
    parser.add_argument(
        "--sides",
        default=",".join(bulk_and_upsert.SIDES_BY_KEY),
        help="comma-separated, of: %(default)s",
    )
    arguments = parser.parse_args()
    try:
        sides = [bulk_and_upsert.SIDES_BY_KEY[key] for key in arguments.sides.split(",")]
    except KeyError as unknown:
        parser.error(f"no side {unknown}; there are {', '.join(bulk_and_upsert.SIDES_BY_KEY)}")

    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - started:6.0f} s] {text}", file=sys.stderr, flush=True)

    OUTPUT.mkdir(parents=True, exist_ok=True)
    say("input files")
    data = make_input(OUTPUT, rows=arguments.rows)
    warm_up = make_input(OUTPUT, rows=arguments.warm_up_rows or arguments.rows)
    results = bulk_and_upsert.run(data, OUTPUT, warm_up=warm_up, sides=sides, rounds=arguments.rounds, say=say)
    text = report.format_markdown(results, data, warm_up=warm_up, rounds=arguments.rounds)
    (OUTPUT / "bulk_and_upsert.md").write_text(text)
    values = report.describe_results(results, data, rounds=arguments.rounds)
    values["input"] = {key: value for key, value in describe_input(data).items() if not key.endswith("ed")}
    (OUTPUT / "bulk_and_upsert.json").write_text(json.dumps(values, indent=2) + "\n")
    print(text)
    for name, reason in results.failures.items():
        print(f"FAILED {name}: {reason}", file=sys.stderr)
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
