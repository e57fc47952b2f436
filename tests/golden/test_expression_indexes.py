"""Indexes on expressions that Apache Hudi built: ours of the same data could have other records, and queries that they
prune other answers.
"""

import shutil
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.format.metadata.key_records import decode_bloom_filters
from pyhudi.format.metadata.stats import decode_column_stats
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.snapshot import read_snapshot
from tests.support.golden_tables import GoldenTables
from tests.support.metadata_indexes import index_cells

DAY, LOWER = "expr_index_idx_day", "expr_index_idx_lower"
TABLES = {"cow_expr_index_v8_h102": (DAY, LOWER), "mor_expr_index_v8_h102": (DAY,)}
KEYS = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]


@pytest.fixture(params=TABLES)
def copied(request: pytest.FixtureRequest, golden: GoldenTables, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden.get(str(request.param)).path, tmp_path / str(request.param)))


def records(path: Path, index: str) -> dict[str, dict[str, object]]:
    """Key -> what its record says, all of it but, of a filter, the time of the action that made it."""
    storage = LocalStorage(str(path))
    snapshot = read_snapshot(storage, UTC, open_listing)
    cells, schema = index_cells(snapshot, index), open_metadata_table(storage, UTC).record_schema
    decode = decode_bloom_filters if index == LOWER else decode_column_stats
    rows = decode(pa.array(cells.values(), pa.binary()), schema).to_pylist()
    for row in rows:
        row.pop("timestamp", None)
    return dict(zip(cells, rows, strict=True))


def test_an_index_built_anew_has_the_records_of_apache_hudis(copied: Path) -> None:
    table, storage = HudiTable.open(copied), LocalStorage(str(copied))
    definitions = read_definitions(storage)
    newest = {Path(name).name for name in table.scan().files()}
    for index in TABLES[copied.name]:
        theirs = records(copied, index)
        table.drop_index(index)
        of = definitions[index]
        expression = "from_unixtime(ts, 'yyyy-MM-dd')" if index == DAY else "lower(name)"
        table.build_index(of.type, name=index.removeprefix("expr_index_"), expression=expression)
        made = read_definitions(storage)[index]
        assert (made.type, made.function, made.source_fields, made.options) == (
            of.type, of.function, of.source_fields, of.options,
        )  # fmt: skip
        ours = records(copied, index)
        assert ours == {key: theirs[key] for key in ours}
        # Theirs still has the files of older slices.
        assert len(theirs) - len(ours) == sum(1 for _ in copied.glob("p*/*.parquet")) - sum(
            name.endswith(".parquet") for name in newest
        )


def test_an_index_that_cannot_be_computed_goes_and_one_that_is_switched_off(
    golden: GoldenTables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(shutil.copytree(golden.get("cow_expr_index_v8_h102").path, tmp_path / "table"))
    definitions = path / ".hoodie" / ".index_defs" / "index.json"
    definitions.write_text(definitions.read_text().replace('"from_unixtime"', '"to_the_moon"'))
    table = HudiTable.open(path)
    row = table.scan(meta_fields=False).to_arrow().slice(0, 1)
    table.upsert(row)
    assert table.properties["hoodie.table.metadata.partitions"] == f"{LOWER},files"
    assert f"dropping the metadata partitions {DAY}" in caplog.text
    assert list(read_definitions(LocalStorage(str(path)))) == [LOWER]
    table.upsert(row, options={"hoodie.metadata.index.expression.enable": "false"})
    assert table.properties["hoodie.table.metadata.partitions"] == "files"


def test_queries_by_the_expression_read_less_and_answer_alike(copied: Path) -> None:
    with_indexes = HudiTable.open(copied)
    without = HudiTable.open(copied, options={"hoodie.enable.data.skipping": False})
    day = "from_unixtime(ts, 'yyyy-MM-dd')"
    wheres = {
        f"{day} = '2023-11-23'": 0, f"{day} = '2023-11-24'": 2, f"'2023-11-14' > {day}": 2, f"{day} is null": 2,
        f"{day} in ('2023-11-30', '2022-01-01')": 2, f"{day} between '2023-11-16' and '2023-11-20'": 0,
        f"{day} = '2023-11-24' or id = 'k1'": 0, f"not ({day} <= '2023-11-23')": 2, "from_unixtime(ts) = '2023'": 0,
    }  # fmt: skip
    for where, partitions in wheres.items():
        scan, other = with_indexes.scan(where=where), without.scan(where=where)
        assert scan.to_arrow().sort_by(KEYS).equals(other.to_arrow().sort_by(KEYS)), where
        told = [one for one in scan._plan.explanation.indexes if one.index == DAY]
        assert sum(one.partitions for one in told) == partitions, where
    if LOWER not in TABLES[copied.name]:
        return
    (name,) = without.scan(columns=["name"]).to_arrow().column("name").drop_null().to_pylist()[:1]
    for where, files in ((f"lower(name) = '{name.lower()}'", 0), ("lower(name) in ('nobody', 'none')", 2)):
        scan = with_indexes.scan(where=where)
        assert len(scan.to_arrow()) == len(without.scan(where=where).to_arrow()), where
        told = [one for one in scan._plan.explanation.indexes if one.index == LOWER]
        assert sum(one.files for one in told) >= files, where
