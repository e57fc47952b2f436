"""`python -m bench.metadata_scale`: listing through the metadata table, beside Apache Hudi on the same one.

Three data sets of RFC-15 (spec/001). Cold: each question in a fresh process, from the start of the call; the start of
the process (Python's interpreter and imports, the Java virtual machine) is told apart. Warm: again in that process.
Writes `build/bench/metadata-scale-<data set>.json` and `.md`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.java_probe import HUDI_VERSION, JavaProbe, compile_probe
from bench.metadata_dataset import DATASETS, Dataset, make_table
from pyhudi.api import TableMetadata
from tests.support.reference.environment import PROJECT

OUTPUT = PROJECT / "build" / "bench"
QUESTIONS = {
    "partitions": "getAllPartitions",
    "files": "getAllFilesInPartition",
    "all": "all files of all partitions",
    "query": "listing for a query on one partition",
}
REPEATS = 5
# RFC-15's table: milliseconds, on HDFS, of its prototype: by listing, and with consolidated metadata.
DOCUMENT = {
    "C": {"partitions": (7_798.0, 0.2), "files": (6.4, 0.1)},
    "M": {"partitions": (135_839.0, 11.3), "files": (146.0, 0.5)},
    "E": {"partitions": (602_342.0, 2.9), "files": (17.2, 267.6)},
}

Answer = dict[str, Any]


def ask_pyhudi(table: Path, question: str, argument: str, repeats: int) -> Answer:
    """The probe's answer, with the wall seconds of its process."""
    command = [sys.executable, "-m", "bench.metadata_probe", str(table), question, argument, str(repeats)]
    started = time.perf_counter()
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(f"bench.metadata_probe {question} ended with {done.returncode}: {done.stderr[-2000:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "process_s": wall_s}


def measure(
    dataset: Dataset, table: Path, java: JavaProbe, rounds: int, steps: set[str], say: Callable[[str], None]
) -> dict[str, dict[str, list[Answer]]]:
    """Answers by question and side, one a round, in turns. Both sides must count the same."""
    found: dict[str, dict[str, list[Answer]]] = {}
    partition = dataset.partition(dataset.partitions // 2)
    if "create" in steps:
        answers = found["create"] = {"pyhudi": [], "hudi": []}
        for _ in range(rounds):
            drop(table)
            answers["hudi"].append(java.ask(table, "create", "-", 0))
            drop(table)
            answers["pyhudi"].append(ask_pyhudi(table, "create", "-", 0))
            say(f"create: Apache Hudi {answers['hudi'][-1]['created_s']:.2f} s, pyhudi {shown(answers['pyhudi'][-1])}")
    if not TableMetadata.open(table).partitions_in_use:
        ask_pyhudi(table, "create", "-", 0)
    for question in (name for name in QUESTIONS if name in steps):
        answers = found[question] = {"pyhudi": [], "hudi": []}
        for _ in range(rounds):
            answers["pyhudi"].append(ask_pyhudi(table, question, partition, REPEATS))
            answers["hudi"].append(java.ask(table, question, partition, REPEATS))
            ours, theirs = answers["pyhudi"][-1], answers["hudi"][-1]
            say(f"{question}: pyhudi {shown(ours)}; Apache Hudi {shown(theirs)}; {ours['count']:,} counted")
            if ours["count"] != theirs["count"]:
                raise RuntimeError(f"{question}: pyhudi counts {ours['count']:,}, Apache Hudi {theirs['count']:,}")
    return found


def drop(table: Path) -> None:
    TableMetadata.open(table).delete()


def shown(answer: Answer) -> str:
    warm = f", warm {1000 * min(answer['warm_s']):,.3f} ms" if answer["warm_s"] else ""
    return f"{answer['first_s']:.3f} s (process {answer['process_s']:.2f} s){warm}"


def report(dataset: Dataset, found: dict[str, dict[str, list[Answer]]]) -> str:
    """The table for docs/benchmarks.md: medians over the rounds."""
    lines = [
        f"Data set {dataset.name}: {dataset.files:,} files, {dataset.partitions:,} partitions", "",
        f"| | pyhudi, cold | Apache Hudi {HUDI_VERSION}, cold | pyhudi, warm | Apache Hudi, warm | RFC-15: listing, "
        "with metadata |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for question, answers in found.items():
        cold = [
            median(answers[side], lambda a: float(a["created_s"] if "created_s" in a else a["first_s"]))
            for side in ("pyhudi", "hudi")
        ]
        cells = [milliseconds(value) for value in cold]
        if question != "create":
            warm = [median(answers[side], lambda a: statistics.median(a["warm_s"])) for side in ("pyhudi", "hudi")]
            cells += [milliseconds(value) for value in warm]
        else:
            cells += ["", ""]
        document = DOCUMENT[dataset.name].get(question)
        cells.append(f"{document[0]:,.1f} ms, {document[1]:,.1f} ms" if document else "")
        lines.append(f"| {QUESTIONS.get(question, question)} | " + " | ".join(cells) + " |")
    ours = [answer for answers in found.values() for answer in answers["pyhudi"]]
    theirs = [answer for name, answers in found.items() if name != "create" for answer in answers["hudi"]]
    starts = [median(of, lambda a: a["process_s"] - a["first_s"] - sum(a["warm_s"])) for of in (ours, theirs) if of]
    lines += ["", "Start and end of the process, not in the table: " + ", ".join(f"{value:.2f} s" for value in starts)]
    if "all" in found:
        whole = median(found["all"]["pyhudi"], lambda a: a["process_s"] - sum(a["warm_s"]))
        peak = max(answer["peak_bytes"] for answer in found["all"]["pyhudi"])
        lines.append(f"All files of all partitions with the start of the process: {whole:.2f} s, {peak / 1e9:.2f} GB")
    return "\n".join(lines) + "\n"


def median(answers: list[Answer], value: Callable[[Answer], float]) -> float:
    return statistics.median(value(answer) for answer in answers)


def _cold_s(answer: dict[str, Any]) -> float:
    return float(answer["created_s"] if "created_s" in answer else answer["first_s"])


def milliseconds(value_s: float) -> str:
    return f"{value_s * 1000:,.3f} ms" if value_s < 0.1 else f"{value_s * 1000:,.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.metadata_scale", description=__doc__)
    parser.add_argument("--dataset", default="C,M,E", help="data sets, comma-separated (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes a question and side (%(default)s)")
    parser.add_argument("--steps", default=f"create,{','.join(QUESTIONS)}", help="of: %(default)s")
    parser.add_argument("--folder", type=Path, default=OUTPUT, help="where tables and figures go (%(default)s)")
    arguments = parser.parse_args()
    started = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - started:6.0f} s] {text}", file=sys.stderr, flush=True)

    arguments.folder.mkdir(parents=True, exist_ok=True)
    java = compile_probe(arguments.folder)
    for name in arguments.dataset.split(","):
        dataset = DATASETS[name]
        table = make_table(arguments.folder, dataset)
        say(f"data set {name}")
        found = measure(dataset, table, java, arguments.rounds, set(arguments.steps.split(",")), say)
        text = report(dataset, found)
        stem = arguments.folder / f"metadata-scale-{name}"
        stem.with_suffix(".json").write_text(json.dumps(found, indent=1))
        stem.with_suffix(".md").write_text(text)
        print(text, flush=True)


if __name__ == "__main__":
    main()
