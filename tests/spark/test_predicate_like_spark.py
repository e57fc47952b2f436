"""Our reading of a predicate could differ from Spark's: both answer the same list of cases."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyhudi.predicate.syntax import portable_text
from tests.support.spark_frames import reader
from tests.unit.predicate.test_predicate import CASES, kept, table

pytestmark = pytest.mark.spark

IN_A_QUERY = 32
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.filterPushdown": "false",  # statistics would drop NaN rows that Spark keeps
}


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    """The session with these settings; what was there before is put back."""
    before = {name: spark.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="module")
def frame(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("predicate") / "rows.parquet"
    pq.write_table(table(), path)
    return reader(session).parquet(str(path))


@pytest.fixture(scope="module")
def by_spark(frame: Any) -> dict[str, list[int]]:
    """The ids of the rows for which Spark says that a predicate is true. One query answers many predicates."""
    found: dict[str, list[int]] = {}
    texts = [text for text, _ in CASES]
    for start in range(0, len(texts), IN_A_QUERY):
        asked = texts[start : start + IN_A_QUERY]
        columns = [f"({portable_text(text)}) AS is_{n}" for n, text in enumerate(asked)]
        rows = frame.selectExpr("id", *columns).collect()
        found |= {text: sorted(row["id"] for row in rows if row[f"is_{n}"]) for n, text in enumerate(asked)}
    return found


@pytest.mark.parametrize("text, ids", CASES, ids=[text for text, _ in CASES])
def test_spark_keeps_the_same_rows(by_spark: dict[str, list[int]], text: str, ids: list[int]) -> None:
    assert by_spark[text] == ids
    assert kept(text) == ids
