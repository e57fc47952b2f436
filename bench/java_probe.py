"""Apache Hudi's metadata reader in a virtual machine of its own: compiled once, asked by a command line."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.reference.environment import PROJECT, hudi_bundle, reference_java_home, reference_python

HUDI_VERSION = "1.2.0"
HEAP = "4g"
SOURCES = PROJECT / "bench" / "java"
_OPEN_TO_SPARK = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)


@dataclass(frozen=True, slots=True)
class JavaProbe:
    """The command that asks. `classes`: where the probe was compiled to."""

    classes: Path

    def ask(self, table: Path, question: str, argument: str, repeats: int) -> dict[str, Any]:
        """The probe's answer, with the wall seconds of its process. Raises: RuntimeError where it fails."""
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN_TO_SPARK]
        command = [
            str(Path(reference_java_home()) / "bin" / "java"), f"-Xmx{HEAP}", "-Duser.timezone=UTC",
            "-Djol.skipHotspotSAAttach=true",  # a second of vain tries to attach to itself
            *opens, "-cp", f"{self.classes}:{_class_path()}",
            "MetadataProbe", str(table), question, argument, str(repeats),
        ]  # fmt: skip
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall_s = time.perf_counter() - started
        answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not answers:
            raise RuntimeError(f"MetadataProbe {question} ended with {done.returncode}: {done.stderr[-2000:]}")
        answer: dict[str, Any] = {}
        for line in answers:
            answer |= json.loads(line)
        return {**answer, "process_s": wall_s}


def compile_probe(output: Path) -> JavaProbe:
    """Compile where a source is newer than what is there."""
    sources = sorted(SOURCES.glob("*.java"))
    classes = output / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    made = classes / "MetadataProbe.class"
    if not made.exists() or made.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        javac = Path(reference_java_home()) / "bin" / "javac"
        command = [str(javac), "-nowarn", "-d", str(classes), "-cp", _class_path(), *map(str, sources)]
        subprocess.run(command, check=True, capture_output=True)
    return JavaProbe(classes)


def _class_path() -> str:
    jars = next((reference_python().parents[1] / "lib").glob("python3*/site-packages/pyspark/jars"))
    return f"{hudi_bundle(HUDI_VERSION)}:{jars}/*"
