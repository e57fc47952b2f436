"""A wrong call could fail late, without a name, or with an error of some library below."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import CorruptFile, HudiError, HudiTable, Invalid, NotFound, Unsupported

SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("amount", pa.float64()), ("ts", pa.int64())])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty table: its columns are known, it has no rows."""
    folder = tmp_path / "sales"
    HudiTable.create(folder, name="sales", record_key="id", partition_by="region", ordering="ts", schema=SCHEMA)
    return folder


@pytest.fixture
def table(path: Path) -> HudiTable:
    return HudiTable.open(path)


def change_properties(path: Path, change: Callable[[str], str]) -> None:
    file = path / ".hoodie" / "hoodie.properties"
    file.write_text(change(file.read_text()))


@pytest.mark.parametrize("make", ["nothing", "folder", "file"])
def test_a_path_without_a_table_is_not_found_by_name(tmp_path: Path, make: str) -> None:
    place = tmp_path / "nowhere"
    if make == "folder":
        (place / "p").mkdir(parents=True)
        (place / "p" / "a.parquet").write_bytes(b"PAR1")
    if make == "file":
        place.write_text("no table")

    assert not HudiTable.exists(place)
    with pytest.raises(NotFound, match=f"{place}: expected a Hudi table"):
        HudiTable.open(place)


@pytest.mark.parametrize("version", [0, 1, 10])
def test_an_unknown_version_is_refused_by_name(path: Path, version: int) -> None:
    change_properties(path, lambda text: text.replace("hoodie.table.version=8", f"hoodie.table.version={version}"))

    with pytest.raises(Unsupported, match=rf"{path}/\.hoodie/hoodie\.properties: hoodie\.table\.version={version}"):
        HudiTable.open(path)


def test_a_version_that_changes_under_a_handle_is_noticed(path: Path, table: HudiTable) -> None:
    change_properties(path, lambda text: text.replace("hoodie.table.version=8", "hoodie.table.version=10"))

    with pytest.raises(Unsupported, match=r"hoodie\.table\.version=10"):
        table.scan()


def test_torn_properties_are_corrupt_and_the_file_is_named(path: Path) -> None:
    change_properties(path, lambda text: text[:20])

    with pytest.raises(CorruptFile, match=rf"{path}/\.hoodie/hoodie\.properties at byte 0"):
        HudiTable.open(path)


def test_torn_properties_name_a_backup_only_where_there_is_one(path: Path) -> None:
    change_properties(path, lambda text: text[:20])
    with pytest.raises(CorruptFile) as alone:
        HudiTable.open(path)
    (path / ".hoodie" / "hoodie.properties.backup").write_text("hood")
    with pytest.raises(CorruptFile, match=r"backup'?, '\.hoodie/hoodie\.properties\.backup', is damaged too"):
        HudiTable.open(path)

    assert "backup" not in str(alone.value)


def test_a_table_without_its_properties_is_not_to_be_created_anew(path: Path) -> None:
    (path / ".hoodie" / "timeline" / "20260101000000000_20260101000000001.commit").touch()
    (path / ".hoodie" / "hoodie.properties").unlink()

    with pytest.raises(NotFound, match="put the properties back"):
        HudiTable.open(path)


def test_torn_properties_with_a_good_backup_open(path: Path) -> None:
    folder = path / ".hoodie"
    shutil.copy(folder / "hoodie.properties", folder / "hoodie.properties.backup")
    change_properties(path, lambda text: text[:20])

    table = HudiTable.open(path)

    assert (table.name, table.record_key, table.partition_by, table.ordering) == (
        "sales",
        ("id",),
        ("region",),
        ("ts",),
    )


def test_a_wrong_checksum_is_corrupt(path: Path) -> None:
    change_properties(path, lambda text: text.replace("hoodie.table.name=sales", "hoodie.table.name=bought"))

    with pytest.raises(CorruptFile, match=r"hoodie\.table\.checksum"):
        HudiTable.open(path)


def test_an_unknown_column_is_refused_and_the_columns_are_named(table: HudiTable) -> None:
    for query in (table.scan, table.incremental):
        with pytest.raises(
            Invalid, match="no column 'price' in table 'sales'; there are 'id', 'region', 'amount', 'ts'"
        ):
            query(columns=["id", "price"])


def test_one_column_must_be_in_a_list(table: HudiTable) -> None:
    with pytest.raises(Invalid, match=r"columns='id': expected a sequence of column names, such as \['id'\]"):
        table.scan(columns="id")


@pytest.mark.parametrize(
    "where",
    [
        "",
        "amount >",
        "amount > 1; drop table sales",
        "price > 1",
        "amount",
        "select 1",
        "sum(amount) > 1",
        pc.field("price") > 1,
        17,
    ],
    ids=str,
)
def test_a_bad_predicate_is_refused_when_the_scan_is_made(table: HudiTable, where: Any) -> None:
    for query in (table.scan, table.incremental):
        with pytest.raises((Invalid, Unsupported)):
            query(where=where)


def test_an_unknown_column_of_a_predicate_is_named(table: HudiTable) -> None:
    with pytest.raises(Invalid, match="price"):
        table.scan(where="price > 1")


@pytest.mark.parametrize("as_of", ["", "yesterday", "2026-02-30", "2026", 7, 1.5])
def test_a_bad_as_of_is_refused_by_name(table: HudiTable, as_of: Any) -> None:
    with pytest.raises(Invalid, match=r"^as_of="):
        table.scan(as_of=as_of)


def test_a_bad_range_is_refused_by_name(table: HudiTable) -> None:
    with pytest.raises(Invalid, match=r"^start="):
        table.incremental("soon")
    with pytest.raises(Invalid, match=r"^end="):
        table.incremental(None, "later")


def test_a_kind_of_query_that_does_not_exist_is_refused(table: HudiTable) -> None:
    with pytest.raises(Invalid, match="query='incremental': expected 'snapshot' or 'read_optimized'"):
        table.scan(query="incremental")


@pytest.mark.parametrize(
    "data", [[{"id": "a"}], {"id": ["a"]}, "rows.csv", None, 7, iter([])], ids=lambda d: type(d).__name__
)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete"])
def test_data_that_are_neither_spark_nor_arrow_are_refused_by_type(
    path: Path, table: HudiTable, operation: str, data: Any
) -> None:
    before = sorted(file for file in path.rglob("*") if file.is_file())
    said = rf"data of type {type(data).__module__}.*expected a Spark DataFrame or anything"
    if operation == "delete" and data is None:
        said = "delete: expected rows, or where=…, found neither; where='true' deletes all rows"

    with pytest.raises(Invalid, match=said):
        getattr(table, operation)(data)
    assert sorted(file for file in path.rglob("*") if file.is_file()) == before


def test_keys_of_a_lookup_are_a_sequence_or_arrow_data(table: HudiTable) -> None:
    with pytest.raises(Invalid, match=r"keys='a'"):
        table.lookup("a")
    with pytest.raises(Invalid, match="no 'id' among other"):
        table.lookup(pa.table({"other": ["a"]}))


def test_options_that_nobody_knows_are_refused_when_opening(path: Path) -> None:
    with pytest.raises(Invalid, match=r"hoodie\.upsert\.shuffle\.paralelism.*hoodie\.upsert\.shuffle\.parallelism"):
        HudiTable.open(path, options={"hoodie.upsert.shuffle.paralelism": 2})


def test_paths_of_other_storages_are_refused() -> None:
    with pytest.raises(Unsupported, match="gopher"):
        HudiTable.open("gopher://host/table")
    with pytest.raises(Invalid, match="storage_options"):
        HudiTable.open("memory://errors", storage_options={"key": "value"})


def test_an_occupied_path_is_not_created_over(path: Path, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=f"{path}: expected no table, found one"):
        HudiTable.create(path, name="sales", record_key="id")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(Invalid, match=r"found 'notes\.txt'"):
        HudiTable.create(tmp_path / "other", name="sales", record_key="id")


def test_a_damaged_base_file_is_corrupt_by_name(path: Path, table: HudiTable) -> None:
    table.bulk_insert(pa.table({"id": ["a"], "region": ["x"], "amount": [1.0], "ts": [1]}, schema=SCHEMA))
    (file,) = table.scan().files()
    (path / file).write_bytes((path / file).read_bytes()[:-7])

    with pytest.raises(CorruptFile, match=file.replace(".", r"\.")):
        table.scan().to_arrow()


def test_everything_raised_on_purpose_has_one_root() -> None:
    assert all(issubclass(kind, HudiError) for kind in (NotFound, Invalid, Unsupported, CorruptFile))
