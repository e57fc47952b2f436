"""Processor time and memory of a process and everything that it started, from the kernel's own books."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Self

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
WATCH_INTERVAL_S = 0.1


def read_processor_seconds(root: int) -> float | None:
    """Seconds of the process and its descendants, ended ones too once their parent has taken note.

    None where there is no `/proc`. Only differences of two calls mean something.
    """
    if not Path("/proc/self/stat").exists():
        return None
    # Behind the name: state, parent, …, utime, stime, cutime, cstime.
    return TICK_S * sum(sum(map(int, fields[11:15])) for fields in _stats_of_tree(root))


def read_memory_bytes(root: int) -> int:
    """Resident bytes of the process and its descendants; pages that they share count in each."""
    return PAGE_BYTES * sum(int(fields[21]) for fields in _stats_of_tree(root))


class MemoryWatch:
    """The most memory that a process and its descendants held at once while the block ran, looked at ten times a
    second. `peak_bytes` is 0 where there is no `/proc`."""

    def __init__(self, root: int) -> None:
        self._root, self._ended = root, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_bytes = 0

    def _watch(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, read_memory_bytes(self._root))
            if self._ended.wait(WATCH_INTERVAL_S):
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()


def _stats_of_tree(root: int) -> list[list[str]]:
    """The fields of `/proc/<pid>/stat` behind the name, of the process and its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        # The name in parentheses may hold blanks.
        fields = text[text.rindex(")") + 2 :].split()
        children[int(fields[1])].append(int(folder.name))
        stats[int(folder.name)] = fields
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats:
            found.append(stats[pid])
        waiting += children[pid]
    return found
