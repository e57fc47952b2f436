"""The command line could be slow to start, or fail without a word where its packages are not installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE_DIR = Path(__file__).parents[3] / "src"

HEAVY = ("pyarrow", "numpy", "numba", "pyspark", "pandas", "sqlglot", "fastavro")
PROBE = "import json, sys; import pyhudi.cli.app; print(json.dumps(sorted(sys.modules)))"
WITHOUT_TYPER = """
import sys
sys.modules["typer"] = None
from pyhudi.cli.__main__ import main
main()
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE_DIR), *sys.path])}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)


def test_nothing_heavy_is_imported_at_the_start() -> None:
    modules = json.loads(run(PROBE).stdout)

    assert "typer" in modules
    assert [name for name in HEAVY if name in modules] == []


def test_without_its_packages_it_says_what_to_install() -> None:
    answer = run(WITHOUT_TYPER)

    assert answer.returncode == 1
    assert "pip install 'pyhudi[cli]'" in answer.stderr
    assert "Traceback" not in answer.stderr
