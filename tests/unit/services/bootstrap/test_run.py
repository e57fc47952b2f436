"""A bootstrap could lose or mix up rows of the source, store facts that the source contradicts, or accept a source
whose rows no later write would find.

Tables are made of small folders of files in every version and kind, read by each query, and written on. Sources that
make no table are refused before anything is written.
"""

import os
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.errors import CorruptFile, HudiError, Invalid, Unsupported
from pyhudi.format.bootstrap.index import FILE_IDS_FILE, PARTITIONS_FILE, decode_partition, partition_key
from pyhudi.format.hfile.reader import HFileReader
from tests.support.compare import assert_same_rows

REGEX = {
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": "city=oslo",
    "hoodie.bootstrap.mode.selector.regex.mode": "METADATA_ONLY",
}
FACTS: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "city", "ordering": "ts"}


def rows(city: str, ids: range, ts: int = 1) -> pa.Table:
    return pa.table(
        {"id": [f"{city}{n}" for n in ids], "ts": [ts] * len(ids), "n": list(ids), "city": [city] * len(ids)}
    )


def put(folder: Path, name: str, table: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if name.endswith(".orc"):
        orc.write_table(table, str(folder / name))
    else:
        pq.write_table(table, folder / name, row_group_size=4)


def make_source(source: Path, *, extension: str = ".parquet", folder: str = "city={}") -> pa.Table:
    """Two partitions of two files each; only folders tell the city. Returns all rows."""
    whole = []
    for city in ("oslo", "rome"):
        for number in range(2):
            part = rows(city, range(number * 7, number * 7 + 7))
            put(source / folder.format(city), f"{number}{extension}", part.drop_columns(["city"]))
            whole.append(part)
    (source / "_SUCCESS").touch()
    return pa.concat_tables(whole)


@pytest.mark.parametrize("options", [{}, REGEX, {"hoodie.bootstrap.mode.selector": "FullRecordBootstrapModeSelector"}])
@pytest.mark.parametrize(
    "version, table_type",
    [
        (8, "COPY_ON_WRITE"),
        pytest.param(6, "COPY_ON_WRITE", marks=pytest.mark.long),
        pytest.param(6, "MERGE_ON_READ", marks=pytest.mark.long),
        pytest.param(8, "MERGE_ON_READ", marks=pytest.mark.long),
        pytest.param(9, "COPY_ON_WRITE", marks=pytest.mark.long),
        (9, "MERGE_ON_READ"),
    ],
)
def test_a_bootstrapped_table_has_the_rows_of_its_source_and_is_written_on(
    tmp_path: Path, version: int, table_type: str, options: Mapping[str, str]
) -> None:
    expected = make_source(tmp_path / "source")
    told: list[tuple[int, int]] = []
    table = HudiTable.bootstrap(
        tmp_path / "source", tmp_path / "table", **FACTS, table_version=version, table_type=table_type, options=options,
        on_progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip

    assert told[-1] == (4, 4)
    assert table.table_version == version
    assert table.properties["hoodie.datasource.write.hive_style_partitioning"] == "true"
    assert table.properties["hoodie.bootstrap.base.path"] == (tmp_path / "source").as_uri()
    for query in ("snapshot", "read_optimized"):
        assert_same_rows(table.scan(query=query, meta_fields=False).to_arrow(), expected)
    assert_same_rows(table.incremental(meta_fields=False).to_arrow(), expected)
    assert {i.requested for i in table.timeline()} <= {"00000000000001", "00000000000002"}

    changed = pa.concat_tables([rows("oslo", range(3), 2), rows("rome", range(13, 16), 2)])
    result = table.upsert(changed)
    assert (result.updated, result.inserted) == (4, 2)
    kept = [row for row in expected.to_pylist() if row["id"] not in changed.column("id").to_pylist()]
    after = pa.concat_tables([pa.Table.from_pylist(kept, expected.schema), changed])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), after)
    assert_same_rows(
        table.scan(where="city = 'rome' AND n > 12", meta_fields=False).to_arrow(), rows("rome", range(13, 16), 2)
    )
    assert table.metadata.validate().differences == ()


def test_orc_files_make_a_table_of_orc_files(tmp_path: Path) -> None:
    expected = make_source(tmp_path / "source", extension=".orc")
    table = HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **FACTS, options=REGEX)
    assert table.properties["hoodie.table.base.file.format"] == "ORC"
    table.upsert(rows("oslo", range(1), 2))
    assert table.scan(where="ts = 2").to_arrow().num_rows == 1
    assert table.scan().count() == len(expected)


def test_the_plain_folder_of_null_values_is_a_partition(tmp_path: Path) -> None:
    """Its name begins with `_`, as those of files that are passed over do."""
    source = tmp_path / "source"
    make_source(source, folder="{}")
    put(source / "__HIVE_DEFAULT_PARTITION__", "0.parquet", rows("none", range(3)).drop_columns(["city"]))
    table = HudiTable.bootstrap(source, tmp_path / "table", **FACTS)
    assert table.scan(where="city is null").count() == 3

    late = rows("none", range(1), ts=2).set_column(3, "city", pa.nulls(1, pa.string()))
    assert table.upsert(late).updated == 1
    assert table.scan().count() == 31


def test_plain_folders_and_numbers_and_days_in_them(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for number, day in ((1, "2026-01-10"), (12, "2026-01-11")):
        put(source / str(number) / day, "a.parquet", pa.table({"id": [f"{number}"]}))
    table = HudiTable.bootstrap(source, tmp_path / "table", name="t", record_key="id", partition_by=["n", "day"])
    assert table.schema().types == [pa.string(), pa.int32(), pa.date32()]
    assert sorted(table.scan(columns=["id", "n", "day"]).to_arrow().to_pylist(), key=lambda row: row["n"]) == [
        {"id": "1", "n": 1, "day": date(2026, 1, 10)},
        {"id": "12", "n": 12, "day": date(2026, 1, 11)},
    ]
    table.upsert(table.scan(meta_fields=False).to_arrow())
    assert table.scan().count() == 2


def test_numbers_with_zeros_before_them_stay_texts(tmp_path: Path) -> None:
    put(tmp_path / "source" / "n=01", "a.parquet", pa.table({"id": ["a"]}))
    table = HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", name="t", record_key="id", partition_by="n")
    assert table.scan(columns=["n"]).to_arrow().to_pylist() == [{"n": "01"}]


def test_a_table_without_partitions_and_with_escaped_folders(tmp_path: Path) -> None:
    put(tmp_path / "flat", "a.parquet", pa.table({"id": ["a", "b"]}))
    flat = HudiTable.bootstrap(tmp_path / "flat", tmp_path / "t1", name="t", record_key="id")
    flat.upsert(pa.table({"id": ["b", "c"]}))
    assert flat.scan().count() == 3

    put(tmp_path / "odd" / "city=a%2Fb c", "a.parquet", pa.table({"id": ["a"], "ts": [1]}))
    odd = HudiTable.bootstrap(tmp_path / "odd", tmp_path / "t2", **FACTS)
    assert odd.properties["hoodie.datasource.write.partitionpath.urlencode"] == "true"
    assert odd.scan(columns=["city"]).to_arrow().to_pylist() == [{"city": "a/b c"}]
    odd.upsert(pa.table({"id": ["a"], "ts": [2], "city": ["a/b c"]}))
    assert odd.scan(columns=["ts"]).to_arrow().to_pylist() == [{"ts": 2}]


def test_folders_of_times_need_the_column_in_the_files(tmp_path: Path) -> None:
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.keygen.timebased.output.timezone": "UTC",
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
    }
    rows_of_day = pa.table({"id": ["a"], "at": pa.array([1_768_003_200_000], pa.int64())})  # 10 January 2026
    put(tmp_path / "source" / "2026" / "01" / "10", "a.parquet", rows_of_day)
    facts: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "at", "properties": times}
    table = HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **facts)
    table.upsert(rows_of_day)
    assert table.scan(columns=["id"]).to_arrow().to_pylist() == [{"id": "a"}]

    put(tmp_path / "lacking" / "2026" / "01" / "10", "a.parquet", rows_of_day.drop_columns(["at"]))
    with pytest.raises(Invalid, match="folders tell parts of a time only"):
        HudiTable.bootstrap(tmp_path / "lacking", tmp_path / "other", **facts)


def test_partition_columns_that_the_files_have(tmp_path: Path) -> None:
    put(tmp_path / "source" / "city=oslo", "a.parquet", rows("oslo", range(3)))
    table = HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **FACTS)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), rows("oslo", range(3)))


def test_the_index_names_the_sources(tmp_path: Path) -> None:
    make_source(tmp_path / "source")
    HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **FACTS, options=REGEX)
    partitions, file_ids = (
        HFileReader((tmp_path / "table" / path).read_bytes(), path=path) for path in (PARTITIONS_FILE, FILE_IDS_FILE)
    )
    assert [key for key, _ in partitions.scan()] == [partition_key("city=oslo")]
    assert file_ids.entry_count == 2
    ((_, value),) = partitions.scan()
    sources = decode_partition(bytes(value), path="")
    assert sorted(one.uri for one in sources.values()) == [
        f"file:{tmp_path}/source/city=oslo/{number}.parquet" for number in range(2)
    ]
    sizes = {os.path.getsize(one.uri.removeprefix("file:")) for one in sources.values()}
    assert {one.size_bytes for one in sources.values()} == sizes


@pytest.mark.parametrize("table_type, extension", [("MERGE_ON_READ", ".parquet"), ("COPY_ON_WRITE", ".orc")])
def test_indexes_know_the_rows_whose_columns_are_in_the_source(tmp_path: Path, table_type: str, extension: str) -> None:
    """Skeletons lack the columns. Taken for nulls, or passed over beside a log, they would rule out their rows."""
    make_source(tmp_path / "source", extension=extension)
    table = HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **FACTS, table_type=table_type)
    table.build_index("column_stats")
    table.build_index("partition_stats")
    table.build_index("expr_index", name="by_upper", expression="upper(id)")
    table.build_index("bloom_filters", name="by_lower", expression="lower(id)")
    answers = {"upper(id) = 'OSLO9'": 1, "lower(id) = 'rome3'": 1, "n = 0": 2, "n > 12": 2, "n > 13": 0}

    for _ in range(2):
        for where, count in answers.items():
            assert table.scan(where=where).count() == count, where
        assert table.scan(where="n > 13").explain().files == 0
        assert table.scan(where="upper(id) = 'OSLO9'").explain().files < 4
        assert table.metadata.validate().is_valid
        table.upsert(rows("oslo", range(5, 6), ts=2))  # where logs can be, a log of one row beside skeletons


def _lacks_key(source: Path) -> None:
    put(source / "city=oslo", "b.parquet", pa.table({"ts": [1], "n": [1]}))


def _null_key(source: Path) -> None:
    put(source / "city=oslo", "b.parquet", pa.table({"id": ["x", None], "ts": [1, 1], "n": [1, 1]}))


def _empty_key(source: Path) -> None:
    put(source / "city=oslo", "b.parquet", pa.table({"id": ["x", ""], "ts": [1, 1], "n": [1, 1]}))


def _other_type(source: Path) -> None:
    put(source / "city=oslo", "b.parquet", pa.table({"id": ["x"], "ts": [1], "n": ["text"]}))


def _more_columns(source: Path) -> None:
    put(source / "city=oslo", "b.parquet", pa.table({"id": ["x"], "ts": [1], "n": [1], "more": [1]}))


def _no_parquet(source: Path) -> None:
    (source / "city=oslo" / "b.parquet").write_text("no Parquet")


def _other_extension(source: Path) -> None:
    (source / "city=oslo" / "b.csv").write_text("id,ts,n")


def _other_format(source: Path) -> None:
    put(source / "city=oslo", "b.orc", pa.table({"id": ["x"], "ts": [1], "n": [1]}))


def _other_folder(source: Path) -> None:
    put(source / "town=oslo", "b.parquet", pa.table({"id": ["x"], "ts": [1], "n": [1]}))


def _plain_folder(source: Path) -> None:
    put(source / "oslo", "b.parquet", pa.table({"id": ["x"], "ts": [1], "n": [1]}))


def _deep_folder(source: Path) -> None:
    put(source / "city=oslo" / "more", "b.parquet", pa.table({"id": ["x"], "ts": [1], "n": [1]}))


def _unsteady_folder(source: Path) -> None:
    put(source / "city=a%2fb", "b.parquet", pa.table({"id": ["x"], "ts": [1], "n": [1]}))


def _other_partition(source: Path) -> None:
    put(source / "city=oslo", "b.parquet", rows("bonn", range(1)))


def _meta_fields(source: Path) -> None:
    put(source / "city=oslo", "b.parquet", pa.table({"_hoodie_record_key": ["x"], "id": ["x"], "ts": [1], "n": [1]}))


def _delta(source: Path) -> None:
    (source / "_delta_log").mkdir()
    (source / "_delta_log" / "0.json").touch()


@pytest.mark.parametrize(
    "spoil, why",
    [
        (_lacks_key, r"record key column 'id': expected in each source file, found ts, n"),
        (_null_key, r"found 1 null or empty"),
        (_empty_key, r"found 1 null or empty"),
        (_other_type, r"found 'n' as int64 and as string"),
        (_more_columns, r"found 'more' as no column and as int64|found 'more' as int64 and as no column"),
        (_no_parquet, r"expected a whole Parquet file"),
        (_other_extension, r"expected files whose names end in .parquet or .orc"),
        (_other_format, r"expected files of one format"),
        (_other_folder, r"named after the partition columns city"),
        (_plain_folder, r"expected one way to name folders"),
        (_deep_folder, r"one folder for each partition column, found 2 folders"),
        (_unsteady_folder, r"expected the name that the table gives to these values, 'city=a%2Fb'"),
        (_other_partition, r"a row whose city name the partition 'city=bonn'"),
        (_meta_fields, r"expected rows without meta fields"),
        (_delta, r"it holds a Delta table"),
    ],
)
@pytest.mark.parametrize("mode", ["METADATA_ONLY", "FULL_RECORD"])
def test_a_source_that_makes_no_table_is_refused_before_the_first_byte(
    tmp_path: Path, spoil: Callable[[Path], None], why: str, mode: str
) -> None:
    make_source(tmp_path / "source")
    spoil(tmp_path / "source")
    with pytest.raises((Invalid, CorruptFile), match=why):
        HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **FACTS, mode=mode)
    assert not (tmp_path / "table").exists()


def _refused(tmp_path: Path, source: str, path: str, **more: Any) -> str:
    with pytest.raises(HudiError) as caught:
        HudiTable.bootstrap(tmp_path / source, tmp_path / path, **{**FACTS, **more})
    return str(caught.value)


def test_places_and_arguments_that_make_no_table_are_refused(tmp_path: Path) -> None:
    make_source(tmp_path / "source")
    (tmp_path / "empty").mkdir()
    assert "found no data file" in _refused(tmp_path, "empty", "table")
    assert "found no data file" in _refused(tmp_path, "absent", "table")
    assert "one within the other" in _refused(tmp_path, "source", "source/table")
    assert "one within the other" in _refused(tmp_path, "source/city=oslo", "source")
    assert "one within the other" in _refused(tmp_path, "source", "source")
    assert "one folder for each partition column" in _refused(tmp_path, "source", "table", partition_by=None)
    assert "expected the columns that make up the key" in _refused(tmp_path, "source", "table", record_key=())
    assert "ordering column 'no'" in _refused(tmp_path, "source", "table", ordering="no")
    bucket = {"hoodie.index.type": "BUCKET"}
    assert "not cut by buckets" in _refused(tmp_path, "source", "table", properties=bucket)
    alone = {"hoodie.metadata.index.secondary.column": "v"}
    for given in ("properties", "options"):
        assert "expected a global record index beside" in _refused(tmp_path, "source", "table", **{given: alone})
    unfit = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    assert "expected a table of type MERGE_ON_READ" in _refused(tmp_path, "source", "table", properties=unfit)
    style = {"hoodie.datasource.write.hive_style_partitioning": "false"}
    assert "as the source's folders are named" in _refused(tmp_path, "source", "table", properties=style)
    assert "expected one of MetadataOnly" in _refused(
        tmp_path, "source", "table", options={"hoodie.bootstrap.mode.selector": "com.mine.Selector"}
    )
    no_meta = {"hoodie.populate.meta.fields": "false"}
    assert "hoodie.populate.meta.fields" in _refused(tmp_path, "source", "table", properties=no_meta)
    no_index = {"hoodie.bootstrap.index.enable": "false"}
    assert "without which no reader finds them" in _refused(tmp_path, "source", "table", properties=no_index)
    for text in ("[", "city=(?!oslo).*"):
        assert "expected a regular expression that Java and RE2 read alike" in _refused(
            tmp_path, "source", "table", options={**REGEX, "hoodie.bootstrap.mode.selector.regex": text}
        )
    assert not (tmp_path / "table").exists()

    HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **FACTS)
    assert "expected no table, found one" in _refused(tmp_path, "source", "table")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert "expected an empty folder" in _refused(tmp_path, "source", "other")


def test_a_bootstrap_that_fails_leaves_the_folder_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_source(tmp_path / "source")

    def fail(*_: object, **__: object) -> None:
        raise Invalid("no metadata table today")

    with monkeypatch.context() as patched:
        patched.setattr("pyhudi.api.bootstrap.metadata_upkeep", fail)
        assert "no metadata table today" in _refused(tmp_path, "source", "table", options=REGEX)
    left = [path for path in (tmp_path / "table").rglob("*") if path.is_file() and ".pyhudi_" not in str(path)]
    assert left == []
    assert not HudiTable.exists(tmp_path / "table")
    assert HudiTable.bootstrap(tmp_path / "source", tmp_path / "table", **FACTS).scan().count() == 28


@pytest.mark.parametrize("linked", ["city=oslo", "city=oslo/0.parquet"])
def test_a_source_with_rows_behind_a_link_is_refused(tmp_path: Path, linked: str) -> None:
    source = tmp_path / "source"
    make_source(source)
    (source / "README").symlink_to(source / "_SUCCESS")
    (source / linked).rename(tmp_path / "elsewhere")
    (source / linked).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Unsupported, match=f"{linked}: expected a regular file or folder, found a link"):
        HudiTable.bootstrap(source, tmp_path / "table", **FACTS)

    assert not (tmp_path / "table").exists()
