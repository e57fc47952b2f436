"""Processes that write one table at once, and the rows that must then be there.

What a writer does in a turn follows from its seed, its number and the turn alone. Each commit carries them, so that a
dict can be made of the commits that are on the timeline, one after the other by completion time. A process says in a
journal which of its turns are done: those must be on the timeline, whatever happens later.
"""

import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from pyhudi import Conflict, HudiTable, NotFound
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.commits import read_commit
from tests.support.model import problems_on

Keys: TypeAlias = dict[str, tuple[str, int]]
"""Record key -> partition path, value."""

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.int64())])
CITIES = ("oslo", "rome", "bonn")
REPLACES = ("insert_overwrite", "delete_partitions")
MARK = "turn"
SHARED, OWN = 6, 5
KEEPING = {
    "hoodie.clean.commits.retained": 6, "hoodie.keep.min.commits": 8, "hoodie.keep.max.commits": 10,
}  # fmt: skip
_JOIN_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What all writers of a table do. `kinds`: the operations that a turn may be."""

    path: str
    turns: int
    kinds: tuple[str, ...] = ("upsert",)
    seed: int = 0
    options: tuple[tuple[str, object], ...] = ()

    @property
    def journals(self) -> Path:
        return Path(f"{self.path}.journals")


@dataclass(frozen=True, slots=True)
class Turn:
    """One write. `rows`: record key -> value; `partitions`: for an operation on whole partitions."""

    kind: str
    rows: Mapping[str, int]
    partitions: tuple[str, ...] = ()


def city_of(key: str) -> str:
    return CITIES[sum(key.encode()) % len(CITIES)]


def turn_of(plan: Plan, writer: int, number: int) -> Turn:
    """What a writer does in a turn: keys that all writers share and keys of its own."""
    choose = random.Random(f"{plan.seed}:{writer}:{number}")
    kind = choose.choice(plan.kinds)
    value = writer * 100_000 + number
    shared = [f"shared{n}" for n in choose.sample(range(SHARED), 2)]
    own = [f"own{writer}-{n}" for n in choose.sample(range(OWN), 2)]

    match kind:
        case "insert" | "bulk_insert":  # which look for no keys
            return Turn(kind, {f"new{writer}-{number}-{n}": value for n in range(2)})
        case "insert_overwrite":
            (city,) = choose.sample(CITIES, 1)
            keys = [key for key in (f"over{writer}-{n}" for n in range(12)) if city_of(key) == city]
            return Turn(kind, dict.fromkeys(keys, value), (city,))
        case "delete_partitions":
            return Turn(kind, {}, (choose.choice(CITIES),))
        case _:
            return Turn(kind, dict.fromkeys([*shared, *own], value))


def arrow_of(rows: Mapping[str, int]) -> pa.Table:
    columns = {"id": list(rows), "city": [city_of(key) for key in rows], "v": list(rows.values())}
    return pa.table(columns, SCHEMA)


def make_table(
    path: str, *, table_type: str, version: int, index: str = "SIMPLE", properties: Mapping[str, object] | None = None
) -> HudiTable:
    """A new table in which the row that was written last wins.

    Version 6 states completion times nowhere but in the times of the timeline's files, so nothing is archived there.
    """
    kept = {"hoodie.archive.automatic": "false"} if version == 6 else {}
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    return HudiTable.create(
        path, name="t", record_key="id", partition_by="city", schema=SCHEMA, table_type=table_type,
        table_version=version, properties={**bucket, **kept, **(properties or {})},
    )  # fmt: skip


def write(plan: Plan, writer: int) -> None:
    """Do the turns of a writer that its journal does not know yet. Every handle is a new one, as of a new process."""
    plan.journals.mkdir(exist_ok=True)
    with open(plan.journals / f"{writer}", "a+", encoding="utf-8", buffering=1) as journal:
        journal.seek(0)
        begun = max((json.loads(line)["turn"] for line in journal if line.endswith("}\n")), default=-1)
        journal.write("\n")
        for number in range(begun + 1, plan.turns):
            journal.write(json.dumps({"turn": number, "done": False}) + "\n")
            started = time.monotonic()
            completed = _carry_out(plan, turn_of(plan, writer, number), f"{writer}:{number}")
            took_s = time.monotonic() - started
            journal.write(json.dumps({"turn": number, "done": True, "completed": completed, "took_s": took_s}) + "\n")


def _carry_out(plan: Plan, turn: Turn, mark: str) -> str | None:
    """The completion time of a write; None if there was nothing to do.

    A replacement of a partition is refused while a compaction of it is pending. It is tried again, as the error says.
    """
    while True:
        try:
            return _attempt(plan, turn, mark)
        except Conflict as error:
            if turn.kind not in REPLACES or "compaction '" not in str(error):
                raise


def _attempt(plan: Plan, turn: Turn, mark: str) -> str | None:
    table = HudiTable.open(plan.path, options=dict(plan.options))
    mark_of = {MARK: mark}
    try:
        match turn.kind:
            case "delete_partitions":
                return table.delete_partitions(turn.partitions, extra_metadata=mark_of).completed
            case "delete":
                return table.delete(arrow_of(turn.rows).select(["id", "city"]), extra_metadata=mark_of).completed
            case kind:
                write_rows: Callable[..., object] = getattr(table, kind)
                return write_rows(arrow_of(turn.rows), extra_metadata=mark_of).completed  # type: ignore[attr-defined]
    except NotFound:
        assert turn.kind == "delete_partitions"  # of a partition that nobody has written to, or that was cleaned away
        return None


def start(target: Callable[..., None], *args: object) -> BaseProcess:
    """A new process, which shares nothing with this one."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=args)
    process.start()
    return process


def finish(processes: Sequence[BaseProcess]) -> None:
    """Wait for processes; all must end well."""
    end = time.monotonic() + _JOIN_S
    try:
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
        assert [process.exitcode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()


def journal_lines(plan: Plan) -> Iterator[tuple[int, dict[str, object]]]:
    for file in sorted(plan.journals.iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line:
                yield int(file.name), json.loads(line)


def longest_s(plan: Plan) -> float:
    """How long the longest of all writes took, its waits and its retries included."""
    return max(float(str(line["took_s"])) for _, line in journal_lines(plan) if line["done"])


def landed(plan: Plan) -> list[str]:
    """The marks of the writes on the timeline, by completion time."""
    table = HudiTable.open(plan.path)
    snapshot = table._access.snapshot()
    timeline = snapshot.timeline
    writes = {i.requested: i for i in (*timeline.archived_writes(), *timeline.completed_writes)}.values()
    marks = []

    def landed_at(instant: Instant) -> tuple[int, str]:
        if timeline.layout.has_completion_times:
            return 0, timeline.effective_time(instant)
        return os.stat(f"{plan.path}/{timeline.layout.path(instant)}").st_mtime_ns, instant.requested

    for instant in sorted(writes, key=landed_at):
        mark = read_commit(snapshot.storage, timeline, instant).extra_metadata.get(MARK)
        if mark is not None:
            marks.append(mark)
    return marks


def rows_of(plan: Plan, marks: Sequence[str]) -> Keys:
    """The table as a dict after these writes, one after the other."""
    rows: Keys = {}
    for mark in marks:
        writer, _, number = mark.partition(":")
        turn = turn_of(plan, int(writer), int(number))
        if turn.kind == "delete":
            for key in turn.rows:
                rows.pop(key, None)
            continue
        rows = {key: of for key, of in rows.items() if of[0] not in turn.partitions}
        rows |= {key: (city_of(key), value) for key, value in turn.rows.items()}
    return rows


def check(plan: Plan) -> None:
    """Every write that was answered is on the timeline once, the rows are those of the dict, and nothing is amiss."""
    marks = landed(plan)
    assert [mark for mark, count in Counter(marks).items() if count > 1] == []
    answered = {f"{writer}:{line['turn']}" for writer, line in journal_lines(plan) if line.get("completed")}
    begun = {f"{writer}:{line['turn']}" for writer, line in journal_lines(plan)}
    assert answered <= set(marks) <= begun

    table = HudiTable.open(plan.path)
    found = table.scan(columns=["id", "city", "v"]).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    assert {row["id"]: (row["city"], row["v"]) for row in found} == rows_of(plan, marks)
    assert problems_on(LocalStorage(plan.path)) == []
    assert os.listdir(f"{plan.path}/.hoodie/.pyhudi_running") == []
    assert table.metadata.validate().differences == ()


def serve(plan: Plan, stop: Path) -> None:
    """Run one service after the other, until there is the file `stop`. Others write meanwhile, and none is refused."""
    done: Counter[str] = Counter()
    turn = 0
    while not stop.exists():
        name = ("clean", "archive", "build", "drop", "compact")[turn % 5]
        done[name] += _serve_once(HudiTable.open(plan.path), name)
        turn += 1
    assert done["clean"] + done["archive"] + done["build"] > 0, done


def _serve_once(table: HudiTable, service: str) -> bool:
    """Whether there was something to do."""
    match service:
        case "clean":
            return table.clean(options=KEEPING).requested is not None
        case "archive":
            return table.archive(options=KEEPING).archived > 0
        case "build":
            return table.build_index("column_stats").requested is not None
        case "drop":
            return bool(table.drop_index("column_stats"))
        case _:
            return table.table_type == "MERGE_ON_READ" and table.compact().requested is not None


def read(plan: Plan, stop: Path) -> None:
    """Read again and again, until there is the file `stop`. Each answer is the table after some number of writes."""
    answers = 0
    while not stop.exists():
        before = landed(plan)
        table = HudiTable.open(plan.path)
        rows = table.scan(columns=["id", "city", "v"]).to_arrow().to_pylist()
        found = {row["id"]: (row["city"], row["v"]) for row in rows}
        after = landed(plan)

        assert len(found) == len(rows), "a key is there twice"
        assert after[: len(before)] == before, "a write came to lie before one that was visible"
        assert any(found == rows_of(plan, after[:n]) for n in range(len(before), len(after) + 1)), "half a write"
        answers += 1
    assert answers > 0


def kill_at_random(plan: Plan, writers: int, *, kills: int) -> None:
    """Run writers and kill them (kill -9) at random moments of their writes.

    A writer that was killed goes on as a new process. The turn in which it was killed is not tried again: the turn is
    on the timeline, or it never happened.
    """
    choose = random.Random(plan.seed)
    plan.journals.mkdir()
    running = [start(write, plan, number) for number in range(writers)]
    try:
        for _ in range(kills):
            victim = choose.randrange(writers)
            size = _size(plan, victim)
            while _size(plan, victim) == size and running[victim].is_alive():
                time.sleep(0.002)
            time.sleep(choose.random() * 0.4)
            running[victim].kill()
            running[victim].join()
            running[victim] = start(write, plan, victim)
        finish(running)
    finally:
        for process in running:
            process.kill()


def _size(plan: Plan, writer: int) -> int:
    file = plan.journals / str(writer)
    return file.stat().st_size if file.exists() else 0
