"""A process could fail, or run somebody else's code, where the folder of compiled loops is not as it should be.

Each test runs one loop in fresh processes whose home, temporary folder and package are the test's own.
"""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE_DIR = Path(__file__).parents[3] / "src"
NOBODY = 65534

PROGRAM = """
import threading
import numpy as np
from pyhudi.format.hfile.cells import first_not_ascending
from pyhudi.loops import dispatch
dispatch.CALL_MAX = -1
keys, offsets = np.array([5, 7, 6], np.uint8), np.arange(4)
answers = []
def work():
    answers.append(first_not_ascending(keys, offsets))
threads = [threading.Thread(target=work) for _ in range(THREADS)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert answers == [2] * THREADS, answers
compiled = first_not_ascending.compiled
print(sum(compiled.stats.cache_hits.values()), sum(compiled.stats.cache_misses.values()), len(compiled.signatures))
"""


def run(home: Path, *, threads: int = 1, source: Path = SOURCE_DIR, user: int | None = None) -> tuple[str, str]:
    """The hits, misses and signatures of the cache, and what was logged."""
    (home.parent / "temporary").mkdir(mode=0o1777, exist_ok=True)
    (home.parent / "temporary").chmod(0o1777)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "PYHUDI_CACHE_DIR")
    }
    environment |= {"HOME": str(home), "TMPDIR": str(home.parent / "temporary"), "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("THREADS", str(threads))],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        user=user,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    return home


def test_a_loop_is_compiled_once_and_says_so_and_then_read(home: Path) -> None:
    answer, logged = run(home, threads=8)
    assert answer == "0 1 1"
    assert logged.count("Compiling loops, once for this version") == 1
    assert run(home, threads=8) == ("1 0 1", "")
    for file in home.rglob("*.nb?"):  # a crash of the machine can leave any file so
        file.write_bytes(file.read_bytes()[:40])
    answer, logged = run(home)
    assert answer == "0 1 1"
    assert "cannot be read" in logged
    assert run(home) == ("1 0 1", "")


@pytest.mark.parametrize("is_shut", [False, True])
def test_a_home_and_a_package_that_cannot_be_written(home: Path, is_shut: bool) -> None:
    """As in a container and on an executor: loops are kept among the temporary files, else not at all."""
    shutil.rmtree(home)
    home.write_bytes(b"no folder")
    if is_shut:
        (home.parent / "temporary").mkdir()
        (home.parent / "temporary" / f"pyhudi-{os.geteuid()}").write_bytes(b"no folder")
    answer, logged = run(home)
    assert answer == "0 1 1"
    assert str(home) in logged
    if is_shut:
        assert "Set PYHUDI_CACHE_DIR" in logged
    else:
        assert run(home)[0] == "1 0 1"


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_planted_file_is_not_run(home: Path, mode: int) -> None:
    run(home)
    (index,) = home.rglob("*.nbi")
    trace = home.parent / "trace"
    with index.open("wb") as file:  # the same way numba writes its index, with a value that runs a command
        pickle.dump(__import__("numba").__version__, file)
        file.write(pickle.dumps(Planted(str(trace))))
    run(home)
    assert trace.exists(), "the file would have run in a folder that is trusted: the test can fail"
    trace.unlink()
    with index.open("wb") as file:
        pickle.dump(__import__("numba").__version__, file)
        file.write(pickle.dumps(Planted(str(trace))))
    index.parent.chmod(mode)
    answer, logged = run(home)
    assert answer == "0 1 1"
    assert "can be written by others" in logged
    assert not trace.exists()


class Planted:
    """Unpickled, it makes a file."""

    def __init__(self, trace: str) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple:
        return open, (self.trace, "w")
