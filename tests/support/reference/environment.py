"""The environment of the reference: a Python with PySpark 3.5, and the bundles of Apache Hudi.

Both are made once, under `.venvs/reference/` of the project (not under version control). The
Python packages are pinned by `tools/locks/reference.lock`; the bundles come through Maven.

    python -m tests.support.reference.environment     # make everything now
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
LOCK_FILE = PROJECT / "tools" / "locks" / "reference.lock"
HOME = PROJECT / ".venvs" / "reference"

HUDI_VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
BUNDLE = "hudi-spark3.5-bundle_2.12"


def reference_python() -> Path:
    """The interpreter that has PySpark 3.5; its environment is made on the first call.

    PySpark 3.5 supports Python up to 3.11, so it need not be the interpreter that runs the tests.
    """
    home = HOME / "venv"
    python = home / "bin" / "python"
    stamp = home / "lock.sha256"
    wanted = hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()
    with _one_maker():
        if stamp.exists() and stamp.read_text() == wanted:
            return python
        shutil.rmtree(home, ignore_errors=True)
        found = _run([str(PROJECT / "tools" / "find_python.sh"), "11"], failed="no Python that PySpark 3.5 supports")
        _run([found.strip(), "-m", "venv", str(home)], failed="the reference environment was not made")
        _run(
            [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK_FILE)],
            failed="the packages of the reference were not installed",
        )
        stamp.write_text(wanted)
    return python


def reference_java_home() -> str:
    """The home of a Java that Spark 3.5 and the bundles run on: version 17."""
    return _run([str(PROJECT / "tools" / "find_java.sh"), "17", "17"], failed="no Java 17 for the reference").strip()


def hudi_bundle(version: str) -> Path:
    """The Spark bundle of this release of Apache Hudi; fetched through Maven on the first call."""
    if version not in HUDI_VERSIONS:
        raise ValueError(f"Apache Hudi {version}: the harness knows {', '.join(HUDI_VERSIONS)}")
    return maven_jar("org.apache.hudi", BUNDLE, version)


def maven_jar(group: str, artifact: str, version: str) -> Path:
    """A jar without what it depends on; fetched through Maven on the first call."""
    jars = HOME / "jars"
    jar = jars / f"{artifact}-{version}.jar"
    with _one_maker():
        if jar.exists():
            return jar
        arriving = jars / f"arriving-{artifact}-{version}"
        shutil.rmtree(arriving, ignore_errors=True)
        _run(
            [
                "mvn", "--quiet", "--batch-mode", "dependency:copy",
                f"-Dartifact={group}:{artifact}:{version}", f"-DoutputDirectory={arriving}",
            ],
            failed=f"Maven did not fetch {group}:{artifact}:{version}",
        )  # fmt: skip
        (arriving / jar.name).rename(jar)
        arriving.rmdir()
    return jar


def maven_jars(name: str) -> Path:
    """The folder of the jars that `name`/pom.xml beside this file names, with what they depend on."""
    pom, jars = Path(__file__).parent / name / "pom.xml", HOME / "jars" / name
    with _one_maker():
        stamp = jars / "pom.xml"
        if stamp.exists() and stamp.read_text() == pom.read_text():
            return jars
        shutil.rmtree(jars, ignore_errors=True)
        _run(
            [
                "mvn", "--quiet", "--batch-mode", "--file", str(pom), "dependency:copy-dependencies",
                "-DincludeScope=runtime", f"-DoutputDirectory={jars}",
            ],
            failed=f"Maven did not fetch what {pom} names",
        )  # fmt: skip
        shutil.copy(pom, stamp)
    return jars


@contextlib.contextmanager
def _one_maker() -> Iterator[None]:
    """Hold the right to change `.venvs/reference/`: test processes may run side by side."""
    (HOME / "jars").mkdir(parents=True, exist_ok=True)
    with (HOME / "making.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], *, failed: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{failed}: {command[0]} ended with {done.returncode}:\n{said}")
    return done.stdout


def main() -> None:
    print(reference_python())
    for version in sys.argv[1:] or HUDI_VERSIONS:
        print(hudi_bundle(version))


if __name__ == "__main__":
    main()
