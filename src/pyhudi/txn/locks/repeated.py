"""Signs of life and leases are renewed by a thread beside the work."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(step: Callable[[], object], *, every_ms: int, name: str) -> Iterator[None]:
    """Call `step` in a thread after each `every_ms`, until the block ends. `step` must not raise."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every_ms / 1000):
            step()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        if thread.is_alive():  # not so in a forked child
            thread.join()
