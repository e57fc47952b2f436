"""The end of a process while a stream is at work in it.

Spark calls sinks on threads that Python does not wait for, and compactions run beside them. At the end of a process
Python stops such threads wherever they are. Where that is within Arrow, whose thread pools then wait for an answer, the
process never ends. Seen: one of 28 processes that ended while a compaction began.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger("pyhudi")


class WorkAtEnd:
    """Work that the end of the process waits for. Once it waits, no more work begins."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: list[str] = []
        self._ends = False
        self._is_registered = False

    @contextmanager
    def held(self, what: str) -> Iterator[bool]:
        """Do a piece of work in this block. It is given False where the process ends: then do nothing.

        `what`: the work, for the log.
        """
        with self._changed:
            begins = not self._ends and self._registers()
            if begins:
                self._running.append(what)
        try:
            yield begins
        finally:
            if begins:
                with self._changed:
                    self._running.remove(what)
                    self._changed.notify_all()

    def wait(self) -> None:
        """Let no more work begin, and wait for what runs."""
        with self._changed:
            self._ends = True
            for what in self._running:
                log.info("the process ends when this is done: %s", what)
            self._changed.wait_for(lambda: not self._running)

    def _registers(self) -> bool:
        """Let the end of the process call `wait`; False where it has come already.

        It does so before thread pools are closed, which the work needs. Functions of `atexit` are called after that.
        """
        if not self._is_registered:
            try:
                getattr(threading, "_register_atexit", atexit.register)(self.wait)
            except RuntimeError:
                return False
            self._is_registered = True
        return True


WORK = WorkAtEnd()
"""That of this process."""
