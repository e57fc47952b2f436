"""Tables with indexes that Apache Hudi wrote: an index that prunes too much changes answers, an idle one saves
nothing. A value of each column is asked for, with the indexes and without.
"""

import pyarrow as pa
import pytest

from pyhudi.api import HudiTable
from tests.support.golden_tables import GoldenTables, golden_names

INDEXED = tuple(
    name
    for name in golden_names()
    if any(m in name for m in ("mdt_all", "secondary_index", "expr_index", "record_index", "rli"))
)
OFF = {"hoodie.enable.data.skipping": False}


def _literal(value: object, kind: pa.DataType) -> str | None:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value) if pa.types.is_integer(kind) else None


@pytest.mark.parametrize("name", INDEXED)
def test_answers_are_the_same_with_and_without_indexes(golden: GoldenTables, name: str) -> None:
    path = golden.get(name).path
    with_indexes, without = HudiTable.open(path), HudiTable.open(path, options=OFF)
    rows = without.scan().to_arrow()
    pruned = asked = 0
    for column in (one for one in without.schema() if not pa.types.is_nested(one.type)):
        values = rows.column(column.name).unique().drop_null().to_pylist()[:1] if len(rows) else []
        literals = [text for value in values if (text := _literal(value, column.type)) is not None]
        wheres = [f"`{column.name}` {op} {text}" for text in literals for op in ("=", "<")]
        for where in [*wheres, f"`{column.name}` is null"]:
            scan, other = with_indexes.scan(where=where), without.scan(where=where)
            keys = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
            assert scan.to_arrow().sort_by(keys).equals(other.to_arrow().sort_by(keys)), where
            assert other._plan.explanation.indexes == ()
            pruned += sum(one.files + one.partitions for one in scan._plan.explanation.indexes)
            asked += 1
    assert asked
    if "column_stats" in without.properties["hoodie.table.metadata.partitions"]:
        assert pruned, "no query was spared a file"
