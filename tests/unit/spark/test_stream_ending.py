"""A process could end in the midst of a compaction beside its stream, or of a batch, and hang there for ever."""

import subprocess
import sys
import threading
from pathlib import Path

from pyhudi import HudiTable
from pyhudi.spark.streams.ending import WorkAtEnd

CHILD = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pyhudi.spark.streams import compaction

began = threading.Event()

def slow(*args, **kwargs):
    began.set()
    time.sleep(0.5)
    with ThreadPoolExecutor(1) as pool:  # compactions need one
        pool.submit(Path(sys.argv[2]).touch).result()

compaction.run = slow
compaction.CompactionBeside(sys.argv[1], {}).start(None)
began.wait()
"""


def test_a_process_ends_when_the_compaction_beside_its_stream_is_done(tmp_path: Path) -> None:
    HudiTable.create(tmp_path / "t", name="t", record_key="id", table_type="MERGE_ON_READ")
    done = tmp_path / "done"
    command = [sys.executable, "-c", CHILD, str(tmp_path / "t"), str(done)]

    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert said.stderr == ""
    assert done.exists()


def test_what_first_begins_while_the_process_ends_is_told_so() -> None:
    """Python takes no more functions for its end then."""
    text = "import threading; from pyhudi.spark.streams.ending import WORK\n"
    text += "def end():\n  with WORK.held('a batch') as begins: print(begins)\n"
    text += "threading._register_atexit(end)"
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert (said.stdout, said.stderr) == ("False\n", "")


def test_the_end_waits_for_what_runs_and_lets_nothing_begin() -> None:
    work, goes_on, ended = WorkAtEnd(), threading.Event(), threading.Event()

    def end() -> None:
        work.wait()
        ended.set()

    waits = threading.Thread(target=end)

    with work.held("a batch") as begins:
        assert begins
        waits.start()
        while not goes_on.is_set():  # the end has begun when nothing else may
            with work.held("another") as may:
                if not may:
                    goes_on.set()
        assert not ended.is_set()

    waits.join(10)
    assert ended.is_set()
