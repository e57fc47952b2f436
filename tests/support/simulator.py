"""Several processes on one table, simulated: one runs at a time, and a seed decides who goes on at each request.

Every request to the storage is a switching point, and so are sleeps, heartbeats and the renewals of leases. Time is
simulated: it goes on by a little with each request, and jumps when everybody waits. A seed also decides who dies, who
stands still, which answers are lost, and how wrong the clocks are. The same seed gives the same run.
"""

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import BinaryIO, TypeVar

import pytest

from pyhudi.errors import Unavailable
from pyhudi.storage.memory import KeptBytes, MemoryStorage
from pyhudi.storage.paths import check_file_path
from pyhudi.storage.protocol import FileInfo, FileVersion, StorageLocation
from pyhudi.testing.crashing import Crash
from pyhudi.timeline import clock as instant_clock
from pyhudi.txn.locks import lease, repeated, waiting

T = TypeVar("T")

START_MS = 1_780_000_000_000
STEPS_MAX = 60_000
LONGEST_MS = 4 * 3_600_000
"""A run that takes longer, in simulated time, counts as one that waits for ever."""
_SLEEP_MAX_MS = 20_000


class Abandoned(BaseException):
    """The run is over: whoever still runs ends here."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What may go wrong. Chances are by request.

    `is_leased`: the table is in an object store. `crash`: a process dies. `refused`, `lost`: a change is not carried
    out, or is, without an answer. `stall`: a process stands still for longer than its heartbeat and its lease allow;
    while it holds the lease, only before requests that begin with `stalls_holding`: by default a renewal, as nothing
    can fence off what follows one.
    `skew_ms`: how far clocks may be off.
    """

    is_leased: bool = False
    crash: float = 0.0
    refused: float = 0.0
    lost: float = 0.0
    stall: float = 0.0
    stalls_holding: tuple[str, ...] = ("put_if",)
    skew_ms: int = 0


@dataclass(eq=False)
class Process:
    """A process of the simulation: it has a clock and dies as a whole."""

    name: str
    skew_ms: int = 0
    is_faulty: bool = True
    is_dead: bool = False
    holds_lease: bool = False
    stalled_until_ms: int = 0


@dataclass(eq=False)
class Task:
    """A thread of a process. `baton`: released for the thread to go on."""

    process: Process
    function: Callable[[], None]
    baton: threading.Lock = field(default_factory=threading.Lock)
    wake_ms: int = 0
    sleeps: int = 0
    is_done: bool = False
    error: BaseException | None = None


class Simulation:
    """One run. `events`: the newest requests, and notes between them."""

    def __init__(self, seed: int, storage: MemoryStorage, faults: Faults) -> None:
        self.random = random.Random(seed)
        self.store, self.faults = storage, faults
        self.now_ms, self.steps = START_MS, 0
        self.restlessness = self.random.choice([0.01, 0.03, 0.1, 0.3])
        self.tasks: list[Task] = []
        self.current: Task | None = None
        self.problems: list[str] = []
        self.events: deque[tuple[int, int, str, str] | str] = deque(maxlen=4_000)
        self.versions: dict[str, int] = {}
        self.crashes = self.switches = 0
        self._is_over = False
        self._main = threading.Lock()
        self._main.acquire()

    @property
    def trace(self) -> list[str]:
        """The newest requests as lines, for whoever looks for the cause of a fault."""
        return [
            f"{'':>15} {event}"
            if isinstance(event, str)
            else f"{event[0]:>6} {event[1] - START_MS:>8} {event[2]} {event[3]}"
            for event in self.events
        ]

    def note(self, what: str) -> None:
        """Put a line into the trace."""
        self.events.append(what)

    def spawn(self, process: Process, function: Callable[[], None]) -> Task:
        """A new thread of a process, which begins when it is its turn."""
        task = Task(process, function)
        task.baton.acquire()
        self.tasks.append(task)
        threading.Thread(target=self._live, args=[task], daemon=True).start()
        return task

    def run(self) -> None:
        """Let everybody run to the end."""
        first = self._choose(None)
        if first is not None:
            self.current = first
            first.baton.release()
            self._main.acquire()
        self.current = None
        self.tasks = [task for task in self.tasks if not task.is_done]
        assert self._is_over or not self.tasks

    def point(self, what: str) -> None:
        """A switching point of the running thread, before a request. Raises: Crash when its process dies here."""
        task = self._mine()
        if task is None:
            return
        process, faults = task.process, self.faults
        if process.is_dead:
            raise Crash(f"{process.name} is dead: {what}")
        self.steps += 1
        self.now_ms += self.random.randrange(4)
        task.sleeps = 0
        self.events.append((self.steps, self.now_ms, process.name, what))
        if self.steps > STEPS_MAX or self.now_ms > START_MS + LONGEST_MS:
            self._give_up(f"waits for ever: {process.name} at {what}, step {self.steps}")
        if process.is_faulty:
            if self.random.random() < faults.crash:
                process.is_dead = True
                self.crashes += 1
                self.note(f"{process.name} DIES")
                raise Crash(f"{process.name} dies at {what}")
            may_stall = not process.holds_lease or what.startswith(faults.stalls_holding)
            if may_stall and self.random.random() < faults.stall:
                process.stalled_until_ms = self.now_ms + self.random.randrange(100_000, 900_000)
                self.note(f"{process.name} STANDS STILL")
                self._switch(task)
                return
        if self.random.random() < self.restlessness:
            self._switch(task)

    def after_point(self, what: str) -> None:
        """The process may die, or learn nothing, after a change landed."""
        task = self._mine()
        if task is not None and task.process.is_faulty and self.random.random() < self.faults.crash / 2:
            task.process.is_dead = True
            self.crashes += 1
            self.note(f"{task.process.name} DIES AFTERWARDS")
            raise Crash(f"{task.process.name} dies after {what}")

    def answer(self, what: str, apply: Callable[[], T]) -> T:
        """Carry out a change, unless the store fails, and maybe lose the answer."""
        task = self._mine()
        if task is None:
            return apply()
        is_faulty = task.process.is_faulty
        if is_faulty and self.random.random() < self.faults.refused:
            self.note("REFUSED")
            raise Unavailable(f"refused: {what}")
        result = apply()
        self.after_point(what)
        if is_faulty and self.random.random() < self.faults.lost:
            self.note("ANSWER LOST")
            raise Unavailable(f"answer lost: {what}")
        return result

    def sleep(self, wait_ms: int) -> None:
        """The running thread waits. The longer it has waited without a request, the longer it sleeps."""
        task = self._mine()
        if task is None:
            self.now_ms += wait_ms
            return
        if instant_clock._issuing.locked():  # nobody else may go on: the lock is the machine's, not the process's
            self.now_ms += wait_ms
            return
        if task.process.is_dead:
            raise Crash(f"{task.process.name} is dead: sleep")
        task.wake_ms = self.now_ms + wait_ms
        self._switch(task)

    def pause(self, wait_ms: int) -> None:
        """As `sleep`, for a wait that is repeated until something happens."""
        task = self._mine()
        if task is not None:
            task.sleeps += 1
            self.steps += 1
            if self.steps > STEPS_MAX or self.now_ms > START_MS + LONGEST_MS:
                self._give_up(f"waits for ever: {task.process.name} sleeps, step {self.steps}")
            wait_ms = min(max(wait_ms, _SLEEP_MAX_MS), wait_ms * 2 ** min(task.sleeps // 4, 20))
            wait_ms += self.random.randrange(max(wait_ms, 2))
        self.sleep(wait_ms)

    def tick(self) -> int:
        """The true time; who asks often sees it go on."""
        return self.now_ms

    def _mine(self) -> Task | None:
        """The running task, when a thread of it asks; a helper thread of pyarrow has none."""
        if self._is_over:
            raise Abandoned
        task = self.current
        return task if task is not None and _here.task is task else None

    def _switch(self, task: Task) -> None:
        chosen = self._choose(task)
        assert chosen is not None
        if chosen is task:
            return
        self.switches += 1
        self.current = chosen
        chosen.baton.release()
        task.baton.acquire()
        if self._is_over:
            raise Abandoned

    def _choose(self, current: Task | None) -> Task | None:
        """Who goes on. Time jumps when everybody waits."""
        alive = [task for task in self.tasks if not task.is_done]
        if not alive:
            return None
        ready = [task for task in alive if self._ready_ms(task) <= self.now_ms]
        if not ready:
            soonest = min(map(self._ready_ms, alive))
            self.now_ms = soonest
            ready = [task for task in alive if self._ready_ms(task) <= soonest]
        others = [task for task in ready if task is not current]
        return self.random.choice(others or ready)

    def _ready_ms(self, task: Task) -> int:
        return max(task.wake_ms, 0 if task.process.is_dead else task.process.stalled_until_ms)

    def _live(self, task: Task) -> None:
        task.baton.acquire()
        _here.task = task
        try:
            if not self._is_over:
                task.function()
        except Abandoned:
            pass
        except BaseException as error:
            task.error = error
        task.is_done = True
        if self._is_over:
            return
        chosen = self._choose(task)
        self.current = chosen
        (self._main if chosen is None else chosen.baton).release()

    def _give_up(self, why: str) -> None:
        """End the run: whoever waits ends with `Abandoned`."""
        self.problems.append(why)
        self._is_over = True
        for task in self.tasks:
            if not task.is_done and task is not self.current:
                task.baton.release()
        self._main.release()
        raise Abandoned


class _Here(threading.local):
    """What the thread at hand is of the simulation."""

    task: Task | None = None


_here = _Here()


@dataclass(eq=False)
class SimulatedClock:
    """The clock of a process."""

    simulation: Simulation
    process: Process

    def now_ms(self) -> int:
        return self.simulation.tick() + self.process.skew_ms

    def sleep_ms(self, wait_ms: int) -> None:
        self.simulation.pause(wait_ms)


@dataclass(eq=False)
class SimulatedStorage:
    """A process's way to the store: each request is a switching point. Versioned, too, as leases need it."""

    simulation: Simulation
    process: Process

    @property
    def location(self) -> StorageLocation:
        return self.simulation.store.location

    def _read(self, what: str) -> MemoryStorage:
        self.simulation.point(what)
        return self.simulation.store

    def _change(self, what: str, path: str, apply: Callable[[], T]) -> T:
        self.simulation.point(what)

        def versioned() -> T:
            self.simulation.versions[path] = self.simulation.versions.get(path, 0) + 1
            return apply()

        return self.simulation.answer(what, versioned)

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        return self._read(f"get {path}").get(path, start, end)

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._read(f"open_input {path}").open_input(path)

    def head(self, path: str) -> FileInfo | None:
        return self._read(f"head {path}").head(path)

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        return self._read(f"list {prefix}").list(prefix, recursive=recursive)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self._read(f"list_folders {prefix}").list_folders(prefix)

    def make_folder(self, path: str) -> None:
        self.simulation.store.make_folder(path)

    def put_new(self, path: str, content: bytes) -> bool:
        return self._change(f"put_new {path}", path, lambda: self.simulation.store.put_new(path, content))

    def put(self, path: str, content: bytes) -> None:
        self._change(f"put {path}", path, lambda: self.simulation.store.put(path, content))

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        check_file_path(path)
        stream = KeptBytes()
        yield stream
        self._change(f"put_stream {path}", path, lambda: self.simulation.store.put(path, stream.getvalue()))

    def delete(self, path: str) -> bool:
        return self._change(f"delete {path}", path, lambda: self.simulation.store.delete(path))

    def delete_prefix(self, prefix: str) -> None:
        """One change for each file."""
        files = [file.path for file in self._read(f"delete_prefix {prefix}").list(prefix, recursive=True)]
        self.delete_many(files)

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def get_versioned(self, path: str) -> tuple[bytes, FileVersion] | None:
        store = self._read(f"get_versioned {path}")
        return (store.get(path), self._version(path)) if store.head(path) is not None else None

    def put_if(self, path: str, content: bytes, expected: FileVersion | None) -> FileVersion | None:
        def apply() -> FileVersion | None:
            simulation = self.simulation
            there = self._version(path) if simulation.store.head(path) is not None else None
            if there != expected:
                return None
            simulation.versions[path] = simulation.versions.get(path, 0) + 1
            simulation.store.put(path, content)
            self.process.holds_lease = b'"expired":false' in content
            return self._version(path)

        what = f"put_if {path}"
        self.simulation.point(what)
        return self.simulation.answer(what, apply)

    def _version(self, path: str) -> FileVersion:
        return FileVersion(str(self.simulation.versions.get(path, 0)), None)


@dataclass(eq=False)
class _Threads:
    """Stands for the module `threading` where the library beats or renews beside its work."""

    simulation: Simulation

    def Lock(self) -> "_Lock":  # noqa: N802
        return _Lock(self.simulation)

    def Event(self) -> "_Event":  # noqa: N802
        return _Event(self.simulation)

    def Thread(self, target: Callable[[], None], name: str, daemon: bool) -> "_Thread":  # noqa: N802
        return _Thread(self.simulation, target)


@dataclass(eq=False)
class _Lock:
    """A lock between the threads of a process."""

    simulation: Simulation
    is_held: bool = False

    def __enter__(self) -> None:
        while self.is_held:
            self.simulation.sleep(1)
        self.is_held = True

    def __exit__(self, *error: object) -> None:
        self.is_held = False


@dataclass(eq=False)
class _Event:
    """Set when the work ends beside which a thread beats."""

    simulation: Simulation
    is_set: bool = False
    waiting: Task | None = None

    def set(self) -> None:
        self.is_set = True
        if self.waiting is not None:
            self.waiting.wake_ms = 0

    def wait(self, timeout: float) -> bool:
        task = self.simulation._mine()
        assert task is not None
        if not self.is_set and not task.process.is_dead:
            self.waiting = task
            self.simulation.sleep(int(timeout * 1_000))
            self.waiting = None
        return self.is_set or task.process.is_dead


@dataclass(eq=False)
class _Thread:
    """A thread that beats; where locks say who is alive nobody needs to."""

    simulation: Simulation
    target: Callable[[], None]
    task: Task | None = None

    def start(self) -> None:
        mine = self.simulation._mine()
        if mine is not None and self.simulation.faults.is_leased:
            self.task = self.simulation.spawn(mine.process, self.target)
            self.task.wake_ms = self.simulation.now_ms

    def is_alive(self) -> bool:
        return self.task is not None and not self.task.is_done

    def join(self) -> None:
        while self.task is not None and not self.task.is_done:
            if self.task.process.is_dead:
                return
            self.simulation.sleep(1)  # 0 would stop the time: whoever is ready then is this thread alone


@contextmanager
def simulated_threads(simulation: Simulation) -> Iterator[None]:
    """Heartbeats and leases are renewed in simulated time while the block lasts."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (repeated, lease):
            patch.setattr(module, "threading", _Threads(simulation))
        # What tells processes and threads apart while they wait is not the same in the next run.
        patch.setattr(waiting, "threading", SimpleNamespace(get_ident=lambda: 0))
        patch.setattr(waiting, "os", SimpleNamespace(getpid=lambda: 0))
        patch.setattr(cached_property, "__get__", _without_lock)
        yield


def _without_lock(self: "cached_property[object]", instance: object, owner: object = None) -> object:
    """As `cached_property.__get__`. Before Python 3.12 that locks, and whoever waits for a lock keeps the baton."""
    if instance is None:
        return self
    assert self.attrname is not None
    kept = instance.__dict__
    if self.attrname not in kept:
        kept[self.attrname] = self.func(instance)
    return kept[self.attrname]
