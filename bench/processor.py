"""Processor time of a process and everything that it started, from the kernel's own books."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def read_processor_seconds(root: int) -> float | None:
    """Seconds of the process and its descendants, ended ones too once their parent has taken note.

    None where there is no `/proc`. Only differences of two calls mean something.
    """
    if not Path("/proc/self/stat").exists():
        return None
    children: dict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        # The name in parentheses may hold blanks; after it: state, parent, …, utime, stime, cutime, cstime.
        fields = text[text.rindex(")") + 2 :].split()
        pid = int(folder.name)
        children[int(fields[1])].append(pid)
        ticks[pid] = sum(int(field) for field in fields[11:15])
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += ticks.get(pid, 0)
        waiting += children[pid]
    return total * TICK_S
