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


@pytest.mark.parametrize("start", range(0, len(CASES), IN_A_QUERY))
def test_spark_keeps_the_same_rows(frame: Any, start: int) -> None:
    """The ids of the rows for which a predicate is true. One query answers many predicates: each costs a second."""
    wanted = dict(CASES[start : start + IN_A_QUERY])
    columns = [f"({portable_text(text)}) AS is_{n}" for n, text in enumerate(wanted)]

    rows = frame.selectExpr("id", *columns).collect()

    assert {text: sorted(row["id"] for row in rows if row[f"is_{n}"]) for n, text in enumerate(wanted)} == wanted
    assert {text: kept(text) for text in wanted} == wanted
