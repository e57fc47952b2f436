"""A module or a function could grow until nobody reads it whole, a folder until nobody knows what is in it.

Lines are counted; what is over the limit needs an entry in a list of tolerated ones, which only shrinks:
an entry that is larger than the real count, or that is no longer needed, fails as well.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/pyhudi", "demo", "bench", "tools")

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FOLDER_MODULES_MAX = 24

# path (and function, after "::") -> its lines today. Lower a count when the code shrinks; never raise one.
TOLERATED_MODULES: dict[str, int] = {}
TOLERATED_FUNCTIONS: dict[str, int] = {}


def python_files(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((root / folder).rglob("*.py"))


def module_sizes(root: Path) -> dict[str, int]:
    """The number of lines of each module, by path from the root."""
    return {
        file.relative_to(root).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for file in python_files(root)
    }


def functions_in(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    """Each function below a node with its qualified name and number of lines, decorators left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                assert child.end_lineno is not None
                yield name, child.end_lineno - child.lineno + 1
            yield from functions_in(child, f"{name}.")
        else:
            yield from functions_in(child, prefix)


def function_sizes(root: Path) -> dict[str, int]:
    """The number of lines of each function, by `path::qualified name`; of equal names the longest."""
    sizes: dict[str, int] = {}
    for file in python_files(root):
        path = file.relative_to(root).as_posix()
        for name, lines in functions_in(ast.parse(file.read_text(encoding="utf-8")), ""):
            sizes[f"{path}::{name}"] = max(lines, sizes.get(f"{path}::{name}", 0))
    return sizes


def broken_limits(sizes: dict[str, int], tolerated: dict[str, int], limit: int) -> list[str]:
    """What is over its limit or its tolerated count, and the tolerated counts that are out of date."""
    problems = []
    for name, lines in sizes.items():
        if lines > max(limit, tolerated.get(name, 0)):
            problems.append(f"{name}: {lines} lines, at most {tolerated.get(name, limit)}; split it")
    for name, lines in tolerated.items():
        real = sizes.get(name, 0)
        if real <= limit:
            problems.append(f"{name}: {real} lines, no longer over {limit}; take it off the list")
        elif real < lines:
            problems.append(f"{name}: {real} lines, tolerated {lines}; lower the entry")
    return problems


def test_no_module_is_longer_than_a_sitting() -> None:
    assert broken_limits(module_sizes(ROOT), TOLERATED_MODULES, MODULE_LINES_MAX) == []


def test_no_function_is_longer_than_a_screen() -> None:
    assert broken_limits(function_sizes(ROOT), TOLERATED_FUNCTIONS, FUNCTION_LINES_MAX) == []


def test_no_folder_of_the_package_has_more_modules_than_one_can_oversee() -> None:
    folders = (file.parent.relative_to(ROOT).as_posix() for file in python_files(ROOT))
    modules = Counter(folder for folder in folders if folder.startswith("src/"))

    assert modules["src/pyhudi/write/handles"] > FOLDER_MODULES_MAX // 2
    assert {folder: count for folder, count in modules.items() if count > FOLDER_MODULES_MAX} == {}


@pytest.mark.parametrize(
    "lines,tolerated,problem",
    [
        (60, {}, ""),
        (61, {}, "split it"),
        (70, {"a": 70}, ""),
        (71, {"a": 70}, "split it"),
        (69, {"a": 70}, "lower the entry"),
        (60, {"a": 70}, "take it off the list"),
    ],
)
def test_the_list_of_tolerated_ones_only_shrinks(lines: int, tolerated: dict[str, int], problem: str) -> None:
    problems = broken_limits({"a": lines}, tolerated, 60)

    assert len(problems) == (1 if problem else 0)
    assert all(problem in text for text in problems)


def test_an_entry_for_a_file_that_is_gone_is_reported() -> None:
    assert broken_limits({}, {"gone": 70}, 60) == ["gone: 0 lines, no longer over 60; take it off the list"]


def test_functions_are_counted_by_their_qualified_name(tmp_path: Path) -> None:
    module = tmp_path / "demo" / "a.py"
    module.parent.mkdir()
    module.write_text(
        "class A:\n    @staticmethod\n    def f():\n        def g():\n            pass\n        return g\n"
    )

    assert function_sizes(tmp_path) == {"demo/a.py::A.f": 4, "demo/a.py::A.f.g": 2}
