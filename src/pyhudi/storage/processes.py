"""Marks of processes: whether the process that left a mark has ended, where the same machine is asked.

A mark names the machine since its last start, the name space of its process numbers, the process, and when that was
started. So neither a restarted machine, nor another container, nor a process number that was given again is taken for
the process. Linux only: elsewhere there are no marks.
"""

import os
from functools import lru_cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PREFIX = "linux"
_START_FIELD = 19
"""Of what follows the command in `/proc/PID/stat`: when the process was started, in ticks since the machine was."""


def process_mark() -> str:
    """The mark of this process; empty where it can have none."""
    return _mark(os.getpid())


def has_ended(mark: str) -> bool | None:
    """Whether the process of a mark has ended. None when nobody here can say."""
    parts = mark.split(":")
    if len(parts) != 5 or parts[:3] != process_mark().split(":")[:3] or not parts[3].isdigit():
        return None
    return _started(int(parts[3])) != parts[4]


@lru_cache(maxsize=4)
def _mark(pid: int) -> str:
    try:
        boot = _BOOT.read_text().strip()
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""
    started = _started(pid)
    return ":".join((_PREFIX, boot, space, str(pid), started)) if started else ""


def _started(pid: int) -> str:
    """When a process was started; empty for one that is not there, or has ended and waits for its parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[_START_FIELD]
