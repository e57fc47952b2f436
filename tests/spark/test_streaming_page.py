"""The examples of docs/streaming.md, and those of docs/sql.md, could fail where a reader runs them."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import stored_batches

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"


def test_the_examples_run(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "incoming").mkdir()
    lines = ['{"id": 1, "city": "oslo", "fare": 10.5, "ts": 1}', '{"id": 2, "city": "rome", "fare": 20.5, "ts": 1}']
    (tmp_path / "incoming" / "rides.json").write_text("\n".join(lines))
    names: dict[str, object] = {"spark": spark, "folder": str(tmp_path)}

    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)

    shown = capsys.readouterr().out
    assert "20.5" in shown
    assert "10.5" not in shown
    assert len(stored_batches(tmp_path / "rides")) == 1


def test_the_examples_of_the_page_about_sql_run(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.with_name("sql.md")
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (first, *_), (merge,) = found, [example for example in found if "mergeInto" in example]
    names: dict[str, object] = {"spark": spark}
    try:
        exec(compile(first, str(page), "exec"), names)
        if hasattr(spark.range(1), "mergeInto"):
            exec(compile(merge, str(page), "exec"), names)
            assert sorted(map(tuple, spark.sql("SELECT id, fare FROM trips").collect())) == [(1, 50), (2, 20), (3, 5)]
    finally:
        spark.sql("DROP TABLE IF EXISTS trips")

    assert "|oslo|     20.0|" in capsys.readouterr().out
