"""The docs could promise what is not so: examples that do not run, tests that do not exist, broken links.

Python examples under the comment `<!-- run -->` are run, those of one page in one go. All pages run in one folder,
and each runs twice, as a reader does. Claims of compatibility.md that no other test shows are tested here.
"""

import ast
import re
import tempfile
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Unsupported
from tests.support.golden_tables import GoldenTables

ROOT = Path(__file__).parents[2]
COMPATIBILITY = ROOT / "docs" / "compatibility.md"
README = ROOT / "README.md"
PAGES = (README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))

_EXAMPLE = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PLACE = re.compile(r"\]\((?!https?:)([^)#]*)#([^)]+)\)")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
_TEST = re.compile(r"^\* \[(\w+)\] `((?:tests|src/pyhudi/testing)/[\w/]+\.py)::(\w+)`$", re.MULTILINE)
_LABEL = re.compile(r"\[([a-z]{1,2})\](?!\()")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def examples(page: Path) -> list[str]:
    """The examples to run, each moved down to its line of the page, so that errors name it."""
    text = text_of(page)
    return ["\n" * text[: match.start(1)].count("\n") + match[1] for match in _EXAMPLE.finditer(text)]


@pytest.fixture(scope="module")
def readers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a reader runs one page after the other."""
    return tmp_path_factory.mktemp("reader")


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
def test_examples_run_again_and_beside_those_of_other_pages(
    page: Path, readers_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "to_pandas()" in text_of(page) and find_spec("pandas") is None:
        pytest.skip("pandas is not installed, which the page's examples use")
    monkeypatch.chdir(readers_folder)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    for _ in range(2):
        names: dict[str, object] = {"__name__": "__main__"}
        for example in examples(page):
            exec(compile(example, str(page), "exec"), names)

    assert list(tmp_path.iterdir())  # they made a table
    assert list(readers_folder.iterdir()) == []  # and left nothing behind


def test_the_pages_with_examples_are_these() -> None:
    """A mark that is spelled otherwise would silently run nothing."""
    with_examples = {
        *("README.md", "tables.md", "writing.md", "reading.md", "merging.md", "compaction.md", "indexes.md"),
        *("savepoints.md", "from-delta.md", "deleting.md", "options.md", "storage.md", "locks.md"),
        *("concurrency.md", "metrics.md", "clustering.md", "services.md", "row-level-changes.md", "change-data.md"),
        *("versions.md", "extending.md"),
        *("schema-evolution.md", "base-files.md", "bootstrap.md"),
    }
    assert {page.name for page in PAGES if examples(page)} == with_examples
    assert sum(text_of(page).count("<!--") for page in PAGES) == sum(len(examples(page)) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_that_are_not_run_are_python_all_the_same(page: Path) -> None:
    for block in _BLOCK.findall(text_of(page)):
        ast.parse(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in _LINK.findall(text_of(page)) if not (page.parent / link).exists()] == []


def places(page: Path) -> set[str]:
    """The names of a page's headings in links: `## Not there yet` is `not-there-yet`."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_pages_lead_to_a_heading(page: Path) -> None:
    links = [(page.parent / link if link else page, name) for link, name in _PLACE.findall(text_of(page))]
    assert [f"{to.name}#{name}" for to, name in links if to.suffix == ".md" and name not in places(to)] == []


def test_the_readme_names_every_extra() -> None:
    extras = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    assert [name for name in extras if f"`{name}`" not in text_of(README) and f"[{name}]" not in text_of(README)] == []


def named_tests() -> dict[str, tuple[str, str]]:
    return {label: (path, name) for label, path, name in _TEST.findall(text_of(COMPATIBILITY))}


def defined_in(path: Path) -> set[str]:
    """The tests that a file defines: functions, methods and classes."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, kinds)}


@pytest.mark.parametrize("label,test", named_tests().items(), ids=lambda value: value if isinstance(value, str) else "")
def test_tests_that_the_docs_name_exist(label: str, test: tuple[str, str]) -> None:
    path, name = test

    assert (ROOT / path).is_file(), f"[{label}] names {path}"
    assert name in defined_in(ROOT / path), f"[{label}] names {name}"


def test_each_label_is_of_one_test_and_is_used() -> None:
    claims, _, listed = text_of(COMPATIBILITY).partition("\n## Tests\n")
    labels = [label for label, *_ in _TEST.findall(listed)]

    assert len(labels) == len(set(labels)) == len([line for line in listed.splitlines() if line])
    assert set(_LABEL.findall(claims)) == set(labels)


def test_no_cell_goes_without_a_test() -> None:
    rows = [line for line in text_of(COMPATIBILITY).splitlines() if line.startswith("| ")]
    cells = [cell.strip() for row in rows for cell in row.strip("|").split("|")[1:]]
    claims = [cell for cell in cells if re.match(r"(yes|no|refused)\b", cell)]

    assert len(claims) > 40
    assert [cell for cell in claims if not _LABEL.search(cell)] == []


# Claims of compatibility.md.


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


def assert_refuses_every_write(path: Path, message: str) -> None:
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    table = HudiTable.open(path)
    rows = table.scan(meta_fields=False).to_arrow()
    assert rows.num_rows > 0

    for write in (table.bulk_insert, table.insert, table.upsert, table.delete):
        with pytest.raises(Unsupported, match=message):
            write(rows)

    after = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert {file: after[file] for file in before} == before
    assert {file.name for file in after.keys() - before.keys()} <= {".pyhudi_guard"}


@pytest.mark.parametrize("version", [0, 4, 10])
def test_other_versions_are_not_created(tmp_path: Path, version: int) -> None:
    with pytest.raises(Unsupported, match=f"table_version={version}"):
        HudiTable.create(tmp_path / "t", name="t", record_key="id", table_version=version)

    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("kind", ["GLOBAL_DELETE", "USER_PROVIDED"])
def test_tables_of_other_key_generators_refuse_every_write(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(path, name="t", record_key="id", partition_by="day")
    table.bulk_insert(pa.table({"id": ["a"], "day": ["2026-11-21"]}))
    properties = path / ".hoodie" / "hoodie.properties"
    stored = properties.read_text(encoding="utf-8")
    properties.write_text(
        stored.replace("hoodie.table.keygenerator.type=SIMPLE", f"hoodie.table.keygenerator.type={kind}"),
        encoding="utf-8",
    )

    assert_refuses_every_write(path, kind)
