"""A module could ask for the number of a table version, and would be forgotten when another version comes.

The source is read, not run. Outside `versions.py` nothing that is called a version, and no timeline layout, is
compared with a number, matched against one, or used to look something up by it.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE_DIR = Path(__file__).parents[2] / "src" / "pyhudi"
TRAITS = "versions.py"

# file -> how many of its questions are about another number than the table's version, and which that is
OTHER_NUMBERS = {
    "format/keys/bloom.py": (3, "the version of a Bloom filter's bytes, and the kind of its hash"),
    "format/hfile/reader.py": (1, "whether cells of an HFile carry versions"),
    "format/log/block.py": (2, "the version of a log block's frame"),
    "format/log/data.py": (1, "the version of a data block's content"),
    "format/log/delete.py": (3, "the version of a delete block's content"),
}

_CALLED_SO = re.compile("version", re.IGNORECASE)
_NUMBERED = ("layout", "kind", "timeline")  # `layout.kind.number`
_CONSTANT = re.compile("_?[A-Z][A-Z0-9_]*")


def is_version(node: ast.expr) -> bool:
    """Whether an expression is called a version: `version`, `config.version.number`, `int(p["…version"])`."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name) if _CALLED_SO.search(name):
            return True
        case ast.Attribute(_, "layout"):
            return True
        case ast.Attribute(ast.Name(name) | ast.Attribute(attr=name), "number"):
            return name in _NUMBERED or _CALLED_SO.search(name) is not None
        case ast.Subscript(slice=ast.Constant(str(text))):
            return _CALLED_SO.search(text) is not None
        case ast.Call(_, arguments):
            names = (a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str))
            return any(map(_CALLED_SO.search, names)) or any(map(is_version, arguments))
        case ast.NamedExpr(target, value):
            return is_version(target) or is_version(value)
    return False


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number that stands in the code, the text of one, a constant, or holds such."""
    match node:
        case ast.Constant(bool()):
            return False
        case ast.Constant(int()):
            return True
        case ast.Constant(str(text)):
            return text.isdigit()
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.Name(name):
            return _CONSTANT.fullmatch(name) is not None
        case ast.Tuple(items) | ast.List(items) | ast.Set(items):
            return any(map(is_number, items))
        case ast.Starred(value):
            return is_number(value)
        case ast.Call(_, arguments):
            return any(map(is_number, arguments))
    return False


def _numbers_of(pattern: ast.pattern) -> Iterator[ast.expr]:
    for node in ast.walk(pattern):
        if isinstance(node, ast.MatchValue) and is_number(node.value):
            yield node.value


def asks_number(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left, _, others):
            asked = [left, *others]
            return any(is_version(a) and is_number(b) for a in asked for b in asked if a is not b)
        case ast.Match(subject, cases):
            return is_version(subject) and any(True for case in cases for _ in _numbers_of(case.pattern))
        case ast.Subscript(ast.Name(table), key):
            return _CONSTANT.fullmatch(table) is not None and table != "VERSIONS" and is_version(key)
        case ast.Subscript(ast.Dict(), key):
            return is_version(key)
    return False


def questions(package_dir: Path) -> Iterator[tuple[str, int]]:
    """File and line of each place that asks for the number of a version."""
    for file in sorted(package_dir.rglob("*.py")):
        name = file.relative_to(package_dir).as_posix()
        if name != TRAITS:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if asks_number(node):
                    yield name, getattr(node, "lineno", 0)


def test_no_module_asks_for_the_number_of_a_version() -> None:
    found = list(questions(PACKAGE_DIR))
    assert [f"{file}:{line}" for file, line in found if file not in OTHER_NUMBERS] == []
    assert Counter(file for file, _ in found) == {file: count for file, (count, _) in OTHER_NUMBERS.items()}


@pytest.mark.parametrize(
    "source",
    [
        "config.version >= 8",
        "6 == table_version",
        "config.version.number < 8",
        "version in (6, 8)",
        "version not in {6}",
        "version in range(6, 9)",
        "6 <= version < 9",
        "version < MODES_STORED_FROM",
        "version in (*_OLD, 9)",
        "int(text_of_version) >= 8",
        "(version := read()) == 8",
        "properties['hoodie.table.version'] == '8'",
        "int(properties.get('hoodie.table.initial.version')) >= 8",
        "timeline.layout == 2",
        "layout.version != 1",
        "config.version.timeline.number == 2",
        "layout.kind.number == 1",
        "_OF_VERSION[new.table_version]",
        "{6: old, 8: new}[version]",
        "match version:\n    case 6 | 7:\n        pass",
        "match config.version.number:\n    case 6:\n        pass",
    ],
)
def test_a_question_is_found(tmp_path: Path, source: str) -> None:
    (tmp_path / "one.py").write_text(source, encoding="utf-8")
    assert [file for file, _ in questions(tmp_path)] == ["one.py"]


@pytest.mark.parametrize(
    "source",
    [
        "version == other.version",
        "version.merging is Merging.PAYLOAD",
        "version is StatsVersion.V1",
        "version is None",
        "layout.kind != version.timeline",
        "config.version.has_index_definitions",
        "VERSIONS[number_of_version]",
        "names[version]",
        "count >= 8",
        "match version.merging:\n    case Merging.MODE:\n        pass",
    ],
)
def test_a_trait_is_no_question(tmp_path: Path, source: str) -> None:
    (tmp_path / "one.py").write_text(source, encoding="utf-8")
    assert list(questions(tmp_path)) == []


def test_the_module_of_traits_may_ask(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / TRAITS).write_text("version >= 8", encoding="utf-8")
    assert list(questions(tmp_path)) == []
