"""A module could tell kinds of indexes apart by their names, so that a new kind would have to be known there, too. Or a
kind could be missing from the registry, claim another one's partitions, or be asked in the wrong order.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi.errors import Invalid, Unsupported
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.kinds.protocol import IndexKind
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.versions import VERSIONS

PACKAGE_DIR = Path(__file__).parents[3] / "src" / "pyhudi"
KINDS_DIR = PACKAGE_DIR / "metadata" / "kinds"

NAMES = {kind.name for kind in registry.KINDS} | {name for kind in registry.KINDS for name in kind.request_names}
PREFIXES = tuple(prefix for kind in registry.KINDS for prefix in kind.prefixes)
NAMING_MODULE = "pyhudi.format.metadata.groups"
CONSTANTS = {
    *("FILES", "COLUMN_STATS", "PARTITION_STATS", "BLOOM_FILTERS", "RECORD_INDEX"),
    *("SECONDARY_INDEX_PREFIX", "EXPRESSION_INDEX_PREFIX", "FUNCTIONAL_INDEX_PREFIX"),
}

# module that names a kind all the same -> why
EXCEPTIONS = {
    "cli/metadata.py": "the default of an option, known before anything heavy is imported; a member of its JSON",
    "format/metadata/index_definitions.py": "encodes the definitions of `index.json`, which hold names of kinds",
    "format/timeline/lsm.py": "'files' is a member of a manifest of the archived timeline",
    "format/metadata/groups.py": "the names themselves, with the file ids that are made of them",
    "metadata/derive/changes_files.py": "encodes records of the listing",
    "metadata/store/files_partition.py": "decodes records of the listing",
    "metrics/names.py": "'files' is a number of an event, how many files a commit has written",
    "spark/indexes.py": "Apache Hudi's dialect gives two kinds an expression, and no name to another",
    "versions.py": "a table version's row says which kinds it has, and how they are called there",
    "table/facts/config.py": "by the listing the table's properties tell whether there is a metadata table",
}


def names_in(tree: ast.Module) -> Iterator[str]:
    """What names a kind: a text that is no docstring, or the import of a name's constant."""
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            if node.value in NAMES or node.value.startswith(PREFIXES):
                yield node.value
        elif isinstance(node, ast.ImportFrom) and node.module == NAMING_MODULE:
            yield from sorted(CONSTANTS & {alias.name for alias in node.names})


def test_only_a_kinds_own_module_names_it() -> None:
    naming = set()
    for file in PACKAGE_DIR.rglob("*.py"):
        if KINDS_DIR not in file.parents and list(names_in(ast.parse(file.read_text(encoding="utf-8")))):
            naming.add(file.relative_to(PACKAGE_DIR).as_posix())
    assert naming == set(EXCEPTIONS)


@pytest.mark.parametrize(
    "source",
    [
        "x = 'column_stats'",
        "def f(of='files'): pass",
        "x = f'secondary_index_{name}'",
        f"from {NAMING_MODULE} import RECORD_INDEX",
    ],
)
def test_a_name_is_found(source: str) -> None:
    assert list(names_in(ast.parse(source)))


@pytest.mark.parametrize("source", ["'files'", "x = 'record index'", "from a import FILES"])
def test_other_texts_are_no_names(source: str) -> None:
    assert not list(names_in(ast.parse(source)))


@pytest.mark.parametrize("kind", registry.KINDS, ids=lambda kind: kind.name)
def test_a_kind_owns_its_partitions_alone(kind: IndexKind) -> None:
    for partition in [f"{prefix}of_city" for prefix in kind.prefixes] or [kind.name]:
        assert registry.find_kind(partition) is kind
        assert [other.name for other in registry.KINDS if other.owns(partition)] == [kind.name]


def test_a_partition_of_a_kind_that_is_not_known_is_none() -> None:
    assert registry.find_kind("vector_index_v") is None
    with pytest.raises(Unsupported, match="'vector_index_v': this release does not build indexes of this kind"):
        registry.get_kind("vector_index_v")


def test_what_build_index_can_be_asked_for() -> None:
    partitions = {
        name: registry.requested_partition(IndexRequest(name, columns, expression=expression))
        for name, columns, expression in (
            ("column_stats", ("city",), None), ("partition_stats", (), None), ("bloom_filters", (), None),
            ("record_index", (), None), ("partitioned_record_index", (), None), ("secondary_index", ("city",), None),
            ("expr_index", ("city",), "lower(city)"),
        )
    }  # fmt: skip
    assert partitions == {
        "column_stats": "column_stats", "partition_stats": "partition_stats", "bloom_filters": "bloom_filters",
        "record_index": "record_index", "partitioned_record_index": "record_index",
        "secondary_index": "secondary_index_city", "expr_index": "expr_index_city",
    }  # fmt: skip
    assert set(partitions) == {name for kind in registry.KINDS for name in kind.request_names}
    on_expression = IndexRequest("bloom_filters", ("city",), expression="lower(city)")
    assert registry.requested_partition(on_expression) == "expr_index_city"
    with pytest.raises(Invalid, match=r"build_index\('zorder'\): expected one of 'column_stats', "):
        registry.requested_partition(IndexRequest("zorder"))


def test_early_tables_have_fewer_kinds() -> None:
    every = ["files", "column_stats", "partition_stats", "record_index", "secondary_index_a", "expr_index_a"]
    assert registry.partitions_of_version(every, VERSIONS[6]) == {"files", "column_stats", "record_index"}
    assert registry.partitions_of_version(every, VERSIONS[8]) == set(every)
    assert registry.names_of_version(VERSIONS[6]) == ["bloom_filters", "column_stats", "record_index"]
    assert registry.absent_forms(["record_index"], VERSIONS[6], is_partitioned=False) == []
    assert registry.absent_forms(["record_index"], VERSIONS[6], is_partitioned=True) == ["partitioned record index"]
    assert registry.absent_forms(every, VERSIONS[6], is_partitioned=False) == [
        "expr_index_a", "partition_stats", "secondary_index_a",
    ]  # fmt: skip


def test_an_index_falls_with_the_one_that_it_needs() -> None:
    present = {"files", "column_stats", "partition_stats", "record_index", "secondary_index_a", "expr_index_a"}
    assert registry.dependents({"column_stats"}, present) == {"partition_stats"}
    assert registry.dependents({"record_index"}, present) == {"secondary_index_a"}
    assert registry.dependents({"expr_index_a"}, present) == set()
    assert registry.dependents(set(), {"files", "partition_stats"}) == {"partition_stats"}


def test_the_option_that_drops_an_index_is_named() -> None:
    off = IndexSettings(column_stats=False, partitioned_record_index=False, secondary=False)
    assert registry.switched_off_by(off, "column_stats") == "hoodie.metadata.index.column.stats.enable"
    assert registry.switched_off_by(off, "record_index") == "hoodie.metadata.record.level.index.enable"
    assert registry.switched_off_by(off, "secondary_index_a") == "hoodie.metadata.index.secondary.enable"
    assert registry.switched_off_by(off, "bloom_filters") == ""
    assert registry.switched_off_by(off, "vector_index_v") == ""


def test_sharp_and_cheap_kinds_are_asked_first() -> None:
    ranks = {kind.name: kind.pruning_rank for kind in registry.KINDS if kind.pruning_rank}
    assert sorted(ranks, key=ranks.__getitem__) == [
        "record_index", "secondary_index", "partition_stats", "column_stats", "expr_index", "bloom_filters",
    ]  # fmt: skip
    assert len(set(ranks.values())) == len(ranks)


def test_a_name_is_looked_for_behind_every_prefix() -> None:
    assert registry.partition_names("a") == ["a", "secondary_index_a", "expr_index_a", "func_index_a"]
