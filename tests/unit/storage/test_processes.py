"""A process that lives could be taken for dead, or another process for it."""

import os
import subprocess
import sys

import pytest

from pyhudi.storage.processes import has_ended, process_mark

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marks are read from /proc")


def test_a_process_that_runs_and_has_ended() -> None:
    code = "from pyhudi.storage.processes import process_mark; print(process_mark(), flush=True); input()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        mark = other.stdout.readline().strip()

        assert mark.split(":")[3] == str(other.pid)
        assert has_ended(mark) is False
        other.kill()
        while has_ended(mark) is False:
            pass
        assert has_ended(mark) is True, "also while nobody has waited for it"
    assert has_ended(mark) is True


def test_a_mark_of_elsewhere_says_nothing() -> None:
    kind, boot, space, pid, started = process_mark().split(":")

    assert has_ended(":".join((kind, boot, space, pid, started))) is False
    assert has_ended(":".join((kind, boot, space, pid, f"{started}0"))) is True, "the number was given again"
    for mark in ("", "linux", f"{kind}:x:{space}:{pid}:1", f"{kind}:{boot}:1:{pid}:1", f"{kind}:{boot}:{space}:x:1"):
        assert has_ended(mark) is None


def test_a_forked_child_has_a_mark_of_its_own() -> None:
    mark = process_mark()
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, process_mark().encode())
        os._exit(0)
    os.waitpid(child, 0)
    own = os.read(reading, 1_000).decode()
    os.close(reading)
    os.close(writing)

    assert own != mark
    assert has_ended(own) is True
