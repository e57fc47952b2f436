"""A table of a version before 5 could be read otherwise than the release reads it that wrote it, or be written to.

The golden tables are of version 2, by 0.9.0. `tests/golden/test_tables.py` compares their rows.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Unsupported
from pyhudi.format.properties import decode_table_properties
from tests.support.golden_tables import GoldenTables

PARTED = "cow_part_v2_h090"


def opened(folder: Path, name: str = PARTED) -> HudiTable:
    return HudiTable.open(GoldenTables(folder).get(name).path)


def at_version(table: HudiTable, folder: Path, version: int, **more: str) -> None:
    """Make a table say another version, as if an earlier or a later release had written it."""
    path = folder / PARTED / PARTED / ".hoodie" / "hoodie.properties"
    properties = decode_table_properties(path.read_bytes(), path=str(path))
    lines = {**properties, "hoodie.table.version": str(version), **more}
    path.write_text("".join(f"{name}={text}\n" for name, text in lines.items() if name != "hoodie.table.checksum"))


def test_a_folder_named_default_has_the_rows_without_a_partition_value(tmp_path: Path) -> None:
    table = opened(tmp_path)
    assert table.scan(where="part IS NULL").to_arrow()["id"].to_pylist() == ["k012", "k013"]
    assert table.scan(where="part = 'default'").count() == 0
    assert table.scan(where="part = 'p0'").count() == 5


def test_archived_instants_beside_the_timeline_are_found(tmp_path: Path) -> None:
    """Seen: 0.9.0 takes the folder `archived` for `.hoodie` itself."""
    table = opened(tmp_path, "cow_clean_archive_v2_h090")
    active = [i for i in table.timeline() if i.action == "commit"]
    whole = [i for i in table.timeline(history=True) if i.action == "commit"]
    assert (len(active), len(whole)) == (4, 8)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_writes_and_changes_of_version_are_refused_with_a_way_out(tmp_path: Path, version: int) -> None:
    table = opened(tmp_path)
    at_version(table, tmp_path, version)
    before = sorted(path for path in tmp_path.rglob("*"))
    assert table.table_version == version
    assert table.scan().count() == 12
    rows = pa.table({"id": ["a"], "part": ["p0"], "ts": [9]})
    for call in (
        lambda: table.upsert(rows), table.clean, lambda: table.upgrade(), lambda: table.upgrade(5, dry_run=True),
        lambda: table.rollback("20261126123544"),
    ):  # fmt: skip
        with pytest.raises(Unsupported, match=r"Write to it once with Apache Hudi 0\.12 or 0\.13"):
            call()
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_what_the_bytes_do_not_tell_is_refused(tmp_path: Path) -> None:
    table = opened(tmp_path)
    at_version(table, tmp_path, 4, **{"hoodie.datasource.write.drop.partition.columns": "true"})
    with pytest.raises(Unsupported, match="its paths do not tell their values"):
        table.scan()
    at_version(table, tmp_path, 1)
    with pytest.raises(Unsupported, match="do not say which columns are their keys"):
        table.scan()
