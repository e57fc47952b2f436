"""One Apache Hudi a release, started when the first test asks for it, kept for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.reference.client import ReferenceHudi

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the real Apache Hudi."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def hudi_0150() -> Iterator[ReferenceHudi]:
    with ReferenceHudi("0.15.0") as hudi:
        yield hudi


@pytest.fixture(scope="session")
def hudi_102() -> Iterator[ReferenceHudi]:
    with ReferenceHudi("1.0.2") as hudi:
        yield hudi


@pytest.fixture(scope="session")
def hudi_111() -> Iterator[ReferenceHudi]:
    with ReferenceHudi("1.1.1") as hudi:
        yield hudi


@pytest.fixture(scope="session")
def hudi_120() -> Iterator[ReferenceHudi]:
    with ReferenceHudi("1.2.0") as hudi:
        yield hudi


@pytest.fixture(scope="session")
def fixture_tables() -> Path:
    """The folder of zipped tables that Apache Hudi wrote."""
    return HERE.parent / "golden" / "tables"
