"""An action could complete although it must not, in another order of steps, or its fate be guessed when an answer gets
lost. And a module could put a state on a timeline by itself, with steps of its own.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from pyhudi.errors import Conflict, LockLost, OutcomeUnknown, Unavailable
from pyhudi.format.names import marker_folder
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.layout import timeline_layout
from pyhudi.txn.action.participants import CommitParticipant
from pyhudi.txn.action.run import ActionRun, ActionTable, Ending, delete_pending_states
from pyhudi.txn.conflicts.verdict import Proceed, Refused, Verdict

PACKAGE_DIR = Path(__file__).parents[4] / "src" / "pyhudi"
LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2"})
REQUESTED, COMPLETED = "20260101000000001", "20260101000000002"
PATH = LAYOUT.path(Instant(REQUESTED, "commit", "COMPLETED", COMPLETED))
WRITTEN = "x/11111111-1111-4111-8111-111111111111-0_0-0-0_20260101000000001.parquet"
LOST = "x/11111111-1111-4111-8111-111111111111-0_0-1-1_20260101000000001.parquet"


class DoubtfulStorage:
    """A store whose answer to the completed file gets lost. `lands`: what of it is there then; None: nothing.
    `is_silent`: it does not say afterwards either.
    """

    def __init__(self, inner: MemoryStorage, lands: bytes | None, *, is_silent: bool = False) -> None:
        self._inner, self._lands, self._is_silent = inner, lands, is_silent

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def put_new(self, path: str, content: bytes) -> bool:
        if path != PATH:
            return self._inner.put_new(path, content)
        if self._lands is not None:
            self._inner.put_new(path, self._lands)
        raise Unavailable("no answer")

    def head(self, path: str) -> object:
        if path == PATH and self._is_silent:
            raise Unavailable("no answer again")
        return self._inner.head(path)


def begun(
    storage: MemoryStorage | DoubtfulStorage,
    confirm: Callable[[], None] = lambda: None,
    participants: tuple[CommitParticipant, ...] = (),
) -> ActionRun:
    """A commit that stands inflight. It has written a file, and a lost attempt at its task another one."""
    table = ActionTable(cast(Storage, storage), LAYOUT, lambda: COMPLETED, confirm, participants)
    run = table.begin(REQUESTED, "commit", request=b"plan", inflight=b"work")
    for path in (WRITTEN, LOST):
        table.storage.put_new(f"{marker_folder(REQUESTED)}/{path}.marker.CREATE", b"")
        table.storage.put_new(path, b"rows")
    return run


def test_the_order_of_the_steps() -> None:
    storage, steps = MemoryStorage(), list[str]()

    def step(what: str) -> None:
        lost = "lost file" if storage.head(LOST) else "no lost file"
        steps.append(f"{what}: {lost}, {'completed' if storage.head(PATH) else 'pending'}")

    def judge(marked: frozenset[str]) -> Verdict:
        assert marked == {WRITTEN, LOST}
        step("judged")
        return Proceed()

    told = cast(CommitParticipant, "the metadata table")
    run = begun(storage, lambda: step("confirmed"), (told,))

    done = run.complete(Ending(b"done", lambda who: step(f"told {who}"), frozenset({WRITTEN}), judge))

    assert done == Instant(REQUESTED, "commit", "COMPLETED", COMPLETED)
    assert steps == [
        "judged: lost file, pending",
        "confirmed: lost file, pending",
        "told the metadata table: no lost file, pending",
        "confirmed: no lost file, pending",
    ]
    assert storage.get(PATH) == b"done"
    assert storage.head(WRITTEN) is not None


def tells_nobody(participant: CommitParticipant) -> None:
    raise AssertionError(f"{participant} was told")


def test_a_refused_action_changes_nothing() -> None:
    storage = MemoryStorage()
    run = begun(storage, participants=(cast(CommitParticipant, "the metadata table"),))
    before = {file.path for file in storage.list("", recursive=True)}

    with pytest.raises(Conflict, match="somebody came first"):
        run.complete(Ending(b"done", tells_nobody, frozenset({WRITTEN}), lambda marked: Refused("somebody came first")))

    assert {file.path for file in storage.list("", recursive=True)} == before


def test_an_action_whose_table_was_taken_changes_nothing() -> None:
    storage = MemoryStorage()

    def lost() -> None:
        raise LockLost("another writer took the table")

    run = begun(storage, lost, (cast(CommitParticipant, "the metadata table"),))
    before = {file.path for file in storage.list("", recursive=True)}

    with pytest.raises(LockLost):
        run.complete(Ending(b"done", tells_nobody, frozenset({WRITTEN})))
    with pytest.raises(LockLost):
        run.complete(Ending(b"done"))

    assert {file.path for file in storage.list("", recursive=True)} == before


@pytest.mark.parametrize(
    "lands, is_silent, error",
    [(b"done", False, None), (b"theirs", False, Conflict), (None, False, Unavailable), (b"done", True, OutcomeUnknown)],
    ids=["landed", "another's", "never came", "nobody says"],
)
def test_an_answer_that_got_lost_is_looked_up(
    lands: bytes | None, is_silent: bool, error: type[Exception] | None
) -> None:
    run = begun(DoubtfulStorage(MemoryStorage(), lands, is_silent=is_silent))

    if error is None:
        assert run.complete(Ending(b"done")).completed == COMPLETED
        return
    with pytest.raises(error):
        run.complete(Ending(b"done"))


def test_an_action_that_somebody_else_completed_is_lost() -> None:
    storage = MemoryStorage()
    run = begun(storage)
    storage.put_new(PATH, b"theirs")

    with pytest.raises(Conflict, match="another writer completed an action under this name"):
        run.complete(Ending(b"done"))


def test_a_new_action_is_requested_once_and_begun_as_often_as_one_likes() -> None:
    storage = MemoryStorage()
    table = begun(storage).table

    again = table.begin(REQUESTED, "commit", request=b"other plan", inflight=b"other work")

    assert storage.get(LAYOUT.path(Instant(REQUESTED, "commit", "REQUESTED"))) == b"plan"
    assert storage.get(LAYOUT.path(again.target)) == b"work"
    with pytest.raises(Conflict, match="another writer requested one under this name"):
        table.request(Instant(REQUESTED, "commit", "REQUESTED"), b"plan")


def test_the_requested_file_of_a_pending_action_goes_last() -> None:
    storage, gone = MemoryStorage(), list[str]()
    run = begun(storage)

    class Watched(DoubtfulStorage):
        def delete(self, path: str) -> bool:
            gone.append(path.rpartition(".")[2])
            return storage.delete(path)

    delete_pending_states(cast(Storage, Watched(storage, None)), LAYOUT, run.target)

    assert gone == ["inflight", "requested"]
    assert not list(storage.list(LAYOUT.folder))


def makers_of_states(package_dir: Path) -> Iterator[str]:
    """Functions that name a file of a timeline and put one."""
    for file in sorted(package_dir.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                calls = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
                names = {name.rpartition(".")[2] for name in calls}
                if any(name.endswith("layout.path") for name in calls) and names & {"put", "put_new", "put_stream"}:
                    yield f"{file.relative_to(package_dir).as_posix()}::{node.name}"


def test_states_are_put_here_and_nowhere_else() -> None:
    """The history of a table's columns has files of its own, named like those of a timeline."""
    assert list(makers_of_states(PACKAGE_DIR)) == [
        "inspect/exports.py::export_instants",  # as JSON, to a folder of the caller's
        "services/upgrade/timeline_copy.py::copy_schema_histories",  # as they were, for the other layout
        "txn/action/outcome.py::put_completed",
        "txn/action/run.py::request",
        "txn/action/run.py::begin",
        "txn/action/run.py::put_inflight",
        "txn/action/schema_history.py::before_completion",  # the history of columns has a timeline of its own
    ]
