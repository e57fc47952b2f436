"""Other writers' locks: processes that take a lock of a provider alone, as Apache Hudi does, and keep it."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyhudi
from pyhudi.api.clock import SYSTEM_CLOCK, random_uuid
from pyhudi.storage.open import parse_location
from pyhudi.txn.locks.guard import Guard, open_guard
from pyhudi.txn.locks.providers.protocol import Provider
from pyhudi.txn.locks.providers.registry import open_provider, provided_guard
from pyhudi.txn.locks.providers.settings import LockSettings

SOURCE_DIR = Path(pyhudi.__file__).parents[1]
ROOT = Path(__file__).parents[2]
LOCKS = "org.apache.hudi.client.transaction.lock"
PREFIX = "hoodie.write.lock."
_ANSWERS = ("ready", "held", "refused", "released")
_ANSWERS_WITHIN_S = 60
_STORED = {"hoodie.table.name": "t"}

_HOLD = """
import json, sys
from tests.support.lock_holders import a_provider
path, options = sys.argv[1], json.loads(sys.argv[2])
with a_provider(options, path).hold("a hold", "20260101000000000", wait_ms=20_000):
    print("held", flush=True)
    sys.stdin.readline()
print("released", flush=True)
"""


def lock_settings(options: Mapping[str, str]) -> LockSettings:
    settings = LockSettings.from_options(options, _STORED)
    assert settings is not None
    return settings


def a_provider(options: Mapping[str, str], path: str) -> Provider:
    """The lock alone, without the table's own guard."""
    return open_provider(lock_settings(options), parse_location(path), SYSTEM_CLOCK, random_uuid)


def a_guard(options: Mapping[str, str], path: str) -> Guard:
    """What a writer of the table holds."""
    location = parse_location(path)
    own = open_guard(location, clock=SYSTEM_CLOCK, new_uuid=random_uuid)
    return provided_guard(lock_settings(options), location, clock=SYSTEM_CLOCK, new_uuid=random_uuid, own=own)


class HolderProcess:
    """A process that says when it holds a lock, and gives it back when it is told."""

    def __init__(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )  # fmt: skip

    def wait_until(self, said: str) -> None:
        """Wait for an answer. Fails at another answer, at the end of the process, and after a minute."""
        answer = self.answer(f"'{said}'")
        assert answer == said

    def answer(self, expected: str = "what became of it") -> str:
        """The next answer. Fails at the end of the process, and after a minute."""
        assert self.process.stdout is not None
        too_late = threading.Timer(_ANSWERS_WITHIN_S, self.process.kill)
        too_late.start()
        try:
            for line in self.process.stdout:
                if line.strip() in _ANSWERS:
                    return line.strip()
            raise AssertionError(f"the holder ended before it said {expected}: {self.process.wait()}")
        finally:
            too_late.cancel()

    def release(self) -> None:
        self.tell("release")
        self.wait_until("released")

    def tell(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def held_elsewhere(options: Mapping[str, str], path: str) -> Iterator[HolderProcess]:
    """Another process holds the lock from now on."""
    import json
    import os

    environment = {**os.environ, "PYTHONPATH": f"{SOURCE_DIR}{os.pathsep}{ROOT}"}
    with running(HolderProcess([sys.executable, "-c", _HOLD, path, json.dumps(dict(options))], environment)) as holder:
        holder.wait_until("held")
        yield holder


@contextmanager
def running(holder: HolderProcess) -> Iterator[HolderProcess]:
    try:
        yield holder
    finally:
        holder.process.kill()
        holder.process.communicate()
