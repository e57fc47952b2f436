"""Apache Hudi could read a table that we bootstrapped otherwise than we do, or lose rows when it writes to it.

pyhudi bootstraps a folder of Parquet files, by metadata only, by full records, and by partition; then both write in
turns. Apache Hudi's own procedures show what it finds in our bootstrap index.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

ROWS = 20
PARTS = ("p1", "p2")
MIXED = {
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": ".*p1",
}
MODES = {"metadata": {}, "mixed": MIXED, "full": {"hoodie.bootstrap.mode.selector": "FullRecordBootstrapModeSelector"}}
RELEASES = [("hudi_120", 9), ("hudi_102", 8), ("hudi_0150", 6)]


def rows(part: str, ids: range, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"{part}-{n:03d}" for n in ids],
            "name": [f"row {n} of {ts}" for n in ids],
            "at": pa.array([n * 1_000_000 for n in ids], pa.timestamp("us", "UTC")),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "part": [part] * len(ids),
        }
    )


def make_source(folder: Path, style: str) -> dict[str, pa.Table]:
    """Two partitions of two files each, in folders named as in `part={}`. Only the path tells the column."""
    model = {part: rows(part, range(ROWS), 1) for part in PARTS}
    for part, table in model.items():
        place = folder / style.format(part)
        place.mkdir(parents=True, exist_ok=True)
        stored = table if style == "" else table.drop_columns(["part"])
        for number in range(2):
            half = stored.slice(number * ROWS // 2, ROWS // 2)
            pq.write_table(half, place / f"{part}-{number}.parquet", row_group_size=7)
    return model


def without_meta(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in table.column_names if name.startswith("_hoodie_")])


class Both:
    """A table that both read and write, and what it must hold."""

    def __init__(self, hudi: ReferenceHudi, path: Path, model: dict[str, pa.Table], table: HudiTable) -> None:
        self.hudi, self.path, self.model, self.table = hudi, path, model, table

    def check(self, *, logs: bool = True) -> None:
        expected = pa.concat_tables(self.model.values())
        assert_same_rows(self.table.scan(meta_fields=False).to_arrow(), expected)
        theirs = {
            "snapshot": self.hudi.read(self.path),
            "without the metadata table": self.hudi.read(self.path, **{"hoodie.metadata.enable": "false"}),
        }
        for found in theirs.values():
            assert_same_rows(without_meta(found).select(expected.column_names), expected)
        assert_same_rows(theirs["snapshot"], self.table.scan().to_arrow().select(theirs["snapshot"].column_names))

    def check_queries(self) -> None:
        """Read-optimized and incremental queries: theirs give what ours give."""
        optimized = self.hudi.read(self.path, **{"hoodie.datasource.query.type": "read_optimized"})
        ours = self.table.scan(query="read_optimized").to_arrow()
        assert_same_rows(optimized, ours.select(optimized.column_names))
        changed = self.hudi.read(
            self.path,
            **{"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"},
        )
        mine = self.table.incremental("000").to_arrow().select(changed.column_names)
        if self.table.table_version == 6 and self.table.table_type == "MERGE_ON_READ":
            # Seen: 0.15.0 shows nulls in all columns of rows that a bootstrap left in their source.
            names = ["_hoodie_commit_time", "_hoodie_record_key"]
            changed, mine = changed.select(names), mine.select(names)
        assert_same_rows(changed, mine)

    def put(self, new: pa.Table) -> None:
        part = new.column("part")[0].as_py()
        kept = pc.invert(pc.is_in(self.model[part].column("id"), value_set=new.column("id").combine_chunks()))
        self.model[part] = pa.concat_tables([self.model[part].filter(kept), new])

    def ours(self, new: pa.Table) -> None:
        self.table.upsert(new)
        self.put(new)
        self.check()

    def theirs(self, new: pa.Table) -> None:
        options = {
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": ",".join(self.table.partition_by),
            "hoodie.datasource.write.hive_style_partitioning": self.table.properties[
                "hoodie.datasource.write.hive_style_partitioning"
            ],
            "hoodie.datasource.write.table.type": self.table.table_type,
            "hoodie.table.name": "t",
        }
        if not self.table.partition_by:
            options["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        self.hudi.write(self.path, new, operation="upsert", **options)
        self.put(new)
        self.check()


def bootstrapped(
    hudi: ReferenceHudi, folder: Path, version: int, table_type: str, mode: str, *, style: str = "part={}"
) -> Both:
    model = make_source(folder / "source", style)
    table = HudiTable.bootstrap(
        folder / "source", folder / "table", name="t", record_key="id", partition_by="part" if style else None,
        ordering="ts", table_type=table_type, table_version=version, options=MODES[mode],
    )  # fmt: skip
    return Both(hudi, folder / "table", model, table)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("name, version", RELEASES)
def test_apache_hudi_reads_and_writes_a_table_that_we_bootstrapped(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, table_type: str, mode: str
) -> None:
    both = bootstrapped(request.getfixturevalue(name), tmp_path, version, table_type, mode)
    both.check()
    both.check_queries()

    both.theirs(rows("p1", range(3, 9), 2))
    both.ours(rows("p2", range(5, 12), 3))
    both.theirs(rows("p2", range(15, 25), 4))
    both.ours(rows("p1", range(0, 5), 5))
    both.check_queries()

    if table_type == "MERGE_ON_READ":
        assert both.table.schedule_compaction().requested
        both.hudi.sql(f"CALL run_compaction(op => 'run', path => '{both.path}')")
        both.check()
        both.ours(rows("p1", range(18, 24), 6))


@pytest.mark.parametrize("style", ["{}", ""], ids=["plain folders", "no partitions"])
@pytest.mark.parametrize("name, version", [("hudi_120", 9), ("hudi_0150", 6)])
def test_apache_hudi_reads_tables_of_other_folders(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, style: str
) -> None:
    both = bootstrapped(request.getfixturevalue(name), tmp_path, version, "COPY_ON_WRITE", "metadata", style=style)
    both.check()
    both.theirs(rows("p1", range(3, 9), 2))
    both.ours(rows("p2", range(5, 12), 3))


def test_apache_hudi_finds_what_our_index_says(hudi_120: ReferenceHudi, tmp_path: Path) -> None:
    both = bootstrapped(hudi_120, tmp_path, 9, "COPY_ON_WRITE", "mixed")
    partitions = hudi_120.sql(f"CALL show_bootstrap_partitions(path => '{both.path}')")
    assert partitions is not None
    assert partitions.column("indexed_partitions").to_pylist() == ["part=p1"]
    mapping = hudi_120.sql(f"CALL show_bootstrap_mapping(path => '{both.path}')")
    assert mapping is not None
    assert sorted(mapping.column("source_file").to_pylist()) == [
        f"file:{tmp_path}/source/part=p1/p1-{number}.parquet" for number in range(2)
    ]
