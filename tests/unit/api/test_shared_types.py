"""Two columns may share a named Avro type, which the second only names. A write of some columns could lose it.

Apache Hudi makes such tables from schemas that its users give. The table here begins with such a schema, too; then
single columns are written, which a log block states without the others.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable

ENUM = {"type": "enum", "name": "E", "namespace": "x", "symbols": ["A", "B"]}
RECORD = {"type": "record", "name": "E", "namespace": "x", "fields": [{"name": "n", "type": "int"}]}


@pytest.mark.parametrize("shared", [ENUM, RECORD], ids=["enum", "record"])
def test_a_partial_upsert_of_the_column_that_only_names_the_type(tmp_path: Path, shared: dict) -> None:
    kind, values = (
        (pa.string(), ["A", "B"]) if shared is ENUM else (pa.struct([("n", pa.int32())]), [{"n": 1}, {"n": 2}])
    )
    optional = [{"name": n, "type": ["null", t], "default": None} for n, t in (("e1", shared), ("e2", "x.E"))]
    fields = [{"name": "id", "type": "string"}, {"name": "o", "type": "long"}, *optional]
    schema = json.dumps({"type": "record", "name": "r", "namespace": "h", "fields": fields})
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="o", table_type="MERGE_ON_READ",
        properties={"hoodie.table.create.schema": schema},
    )  # fmt: skip
    first, second = (pa.array([value], kind) for value in values)
    table.upsert(pa.table({"id": ["a"], "o": [1], "e1": first, "e2": first}))
    assert table.upsert(pa.table({"id": ["a"], "o": [2], "e2": second})).updated == 1

    shown = [{"id": "a", "o": 2, "e1": values[0], "e2": values[1]}]
    assert table.scan(columns=["id", "o", "e1", "e2"]).to_arrow().to_pylist() == shown
    assert table.compact().rows == 1
    assert table.scan(columns=["id", "o", "e1", "e2"]).to_arrow().to_pylist() == shown
