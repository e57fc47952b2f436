"""A module could reach upwards, import an engine where none may be, or take the time from thin air.

The source is read, not run: imports must go down the list of layers, PySpark and pandas stay in their
places, and no module before `api` opens a file, asks a clock or draws a random number by itself.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE_DIR = Path(__file__).parents[2] / "src" / "pyhudi"

# A module imports only from its own layer and those before it.
LAYERS = (
    "errors",
    "metrics",
    "by_content",
    "loops",
    "versions",
    "options",
    "format",
    "storage",
    "executor",
    "timeline",
    "merge",
    "predicate",
    "table",
    "metadata",
    "index",
    "txn",
    "write",
    "services",
    "sql",
    "engine",
    "api",
    "inspect",
    "spark",
    "cli",
    "ui",
    "testing",
)
RANK = {layer: level for level, layer in enumerate(LAYERS)}

# Files that may import pandas: the one that names its type. Arrow's own `to_pandas` needs no import here.
PANDAS_FILES = frozenset({"api/scan.py"})

OPENERS = ("open", "io.open", "os.open", "os.fdopen")
CLOCKS = (
    "time.time",
    "time.time_ns",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
)
RANDOMNESS = (
    *("uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom", "random.SystemRandom"),
    *(f"random.{name}" for name in ("random", "randint", "randrange", "choice", "shuffle", "sample")),
)
SECRETS = "secrets."

# layer or file -> what it may use all the same
EXEMPT = {"storage": (*OPENERS, *CLOCKS, *RANDOMNESS), "txn/locks/guard.py": OPENERS}


def source_files(package_dir: Path) -> Iterator[tuple[tuple[str, ...], ast.Module]]:
    """Each module as its path's parts within the package, and its tree; without the package's `__init__`."""
    for file in sorted(package_dir.rglob("*.py")):
        parts = file.relative_to(package_dir).with_suffix("").parts
        if parts != ("__init__",):
            yield parts, ast.parse(file.read_text(encoding="utf-8"))


def imported_names(node: ast.AST, package: str, where: tuple[str, ...]) -> list[str]:
    """The dotted names that an import statement asks for, relative ones made absolute."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        here = (package, *where)[: -node.level]
        base = ".".join((*here, base) if base else here)
    return [f"{base}.{alias.name}" for alias in node.names]


def running(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of a tree but what stands under `if TYPE_CHECKING:`, which never runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from running(node)


def imports(package_dir: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Each import of each module: the place to show, the module's parts, the name."""
    for where, tree in source_files(package_dir):
        for node in running(tree):
            for target in imported_names(node, package_dir.name, where):
                yield f"{'/'.join(where)}.py:{getattr(node, 'lineno', 0)}", where, target


def layer_of(target: str) -> str:
    """The layer of a dotted name in the package; what is no module is of the public surface, `api`."""
    parts = target.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in RANK else "api"


def upward_imports(package_dir: Path) -> Iterator[str]:
    package = package_dir.name
    for place, where, target in imports(package_dir):
        if target != package and not target.startswith(f"{package}."):
            continue
        if where[0] not in RANK:
            yield f"{place}: unknown layer {where[0]}; add it to LAYERS"
        elif RANK[layer_of(target)] > RANK[where[0]]:
            yield f"{place}: {where[0]} must not import {target}"


def unknown_layers(package_dir: Path) -> Iterator[str]:
    for where, _ in source_files(package_dir):
        if where[0] not in RANK:
            yield f"{'/'.join(where)}.py: unknown layer {where[0]}; add it to LAYERS"


def misplaced_engines(package_dir: Path) -> Iterator[str]:
    """Imports of PySpark, of `engine.spark` and of pandas outside the places that may have them."""
    spark_engine = f"{package_dir.name}.engine.spark"
    for place, where, target in imports(package_dir):
        in_spark_engine = where[:2] == ("engine", "spark")
        top = target.split(".")[0]
        if top in ("pyspark", "py4j") and not (in_spark_engine or where == ("spark",)):
            yield f"{place}: only engine/spark and spark.py import {top}"
        if f"{target}.".startswith(f"{spark_engine}.") and not (in_spark_engine or where[0] in ("api", "spark")):
            yield f"{place}: only api and spark.py import {spark_engine}"
        if top == "pandas" and f"{'/'.join(where)}.py" not in PANDAS_FILES:
            yield f"{place}: pandas is not imported here"


def local_names(tree: ast.Module) -> dict[str, str]:
    """What a name of the module means, where an import brought it; a name it defines itself means nothing."""
    names: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names[statement.name] = ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted_name(node: ast.expr, names: dict[str, str]) -> str:
    """`dt.now` as `datetime.datetime.now` where `dt` was imported so; "" for anything but a dotted name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id if node.id == "open" else "")
    if isinstance(node, ast.Attribute):
        owner = dotted_name(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def outside_sources(package_dir: Path) -> Iterator[str]:
    """Uses of a clock, of randomness or of `open` before `api`; naming one counts as using it."""
    forbidden = {*OPENERS, *CLOCKS, *RANDOMNESS}
    for where, tree in source_files(package_dir):
        if RANK.get(where[0], 0) >= RANK["api"]:
            continue
        file = f"{'/'.join(where)}.py"
        allowed = {*EXEMPT.get(where[0], ()), *EXEMPT.get(file, ())}
        names = local_names(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            name = dotted_name(node, names)
            if (name in forbidden and name not in allowed) or name.startswith(SECRETS):
                yield f"{file}:{node.lineno}: {name} is passed in, never called here"


def test_imports_go_only_to_layers_above() -> None:
    assert list(upward_imports(PACKAGE_DIR)) == []


def test_every_module_belongs_to_a_known_layer() -> None:
    assert list(unknown_layers(PACKAGE_DIR)) == []


def test_pyspark_and_pandas_are_imported_only_in_their_places() -> None:
    assert list(misplaced_engines(PACKAGE_DIR)) == []


def test_no_module_before_api_takes_time_randomness_or_files_by_itself() -> None:
    assert list(outside_sources(PACKAGE_DIR)) == []


def package_of(tmp_path: Path, file: str, source: str) -> Path:
    package_dir = tmp_path / "pyhudi"
    target = package_dir / file
    target.parent.mkdir(parents=True)
    target.write_text(source, encoding="utf-8")
    return package_dir


@pytest.mark.parametrize(
    "file,source",
    [
        ("format/avro.py", "from pyhudi.storage import protocol"),
        ("format/avro.py", "import pyhudi.table.view.snapshot"),
        ("format/log/block.py", "from ...table import snapshot"),
        ("format/log/__init__.py", "from ...table import snapshot"),
        ("options/entries.py", "def f():\n    from .. import timeline"),
        ("write/plan.py", "from pyhudi import HudiTable"),
        ("engine/local.py", "import pyhudi"),
        ("helpers.py", "from pyhudi import errors"),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, file: str, source: str) -> None:
    assert len(list(upward_imports(package_of(tmp_path, file, source)))) == 1


@pytest.mark.parametrize(
    "file,source",
    [
        ("format/avro.py", "from pyhudi.errors import CorruptFile"),
        ("format/log/block.py", "from ..avro import decode\nfrom . import reader\nfrom ... import errors"),
        ("format/log/__init__.py", "from .block import decode\nfrom ..avro import decode"),
        ("cli/main.py", "from pyhudi import HudiTable"),
        ("__init__.py", "from pyhudi.api import HudiTable"),
    ],
)
def test_a_downward_import_is_allowed(tmp_path: Path, file: str, source: str) -> None:
    assert list(upward_imports(package_of(tmp_path, file, source))) == []


@pytest.mark.parametrize(
    "file,source,count",
    [
        ("write/plan.py", "import pyspark", 1),
        ("cli/main.py", "def f():\n    from pyspark.sql import SparkSession", 1),
        ("engine/spark/batch.py", "from pyspark.sql import DataFrame", 0),
        ("spark.py", "from pyspark.sql import DataFrame", 0),
        ("engine/local.py", "from pyhudi.engine import spark", 1),
        ("engine/local.py", "from .spark.batch import run", 1),
        ("api.py", "from pyhudi.engine.spark.batch import run", 0),
        ("api/table.py", "from pyhudi.engine.spark.batch import run", 0),
        ("api/table.py", "from pyspark.sql import DataFrame", 1),
        ("api.py", "import pandas as pd", 1),
    ],
)
def test_a_misplaced_engine_is_found(tmp_path: Path, file: str, source: str, count: int) -> None:
    assert len(list(misplaced_engines(package_of(tmp_path, file, source)))) == count


@pytest.mark.parametrize(
    "file,source,count",
    [
        ("write/plan.py", "import time\nnow = time.time()", 1),
        ("write/plan.py", "import time\npause = time.monotonic()", 0),
        ("write/plan.py", "from time import time as clock\nnow = clock()", 1),
        ("write/plan.py", "from datetime import datetime\nnow = datetime.now()", 1),
        ("write/plan.py", "import datetime as dt\nnow = dt.datetime.now(dt.UTC)", 1),
        ("write/plan.py", "from uuid import uuid4\nmake = uuid4", 1),
        ("write/plan.py", "import os\nos.urandom(4)", 1),
        ("write/plan.py", "import secrets\nsecrets.token_hex()", 1),
        ("write/plan.py", "import random\nrandom.Random(7).random()", 0),
        ("table/config.py", "open('x')", 1),
        ("table/config.py", "storage.open('x')", 0),
        ("storage/local.py", "import time\nopen('x')\ntime.time()", 0),
        ("txn/locks/guard.py", "import os\nos.open('x', 0)", 0),
        ("txn/locks/guard.py", "import time\ntime.time()", 1),
        ("api.py", "import time\ntime.time()", 0),
    ],
)
def test_an_outside_source_is_found(tmp_path: Path, file: str, source: str, count: int) -> None:
    assert len(list(outside_sources(package_of(tmp_path, file, source)))) == count
