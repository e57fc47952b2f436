"""The filters and key ranges of Apache Hudi could be read wrong: then keys of its tables would be taken for new ones,
and their rows be there twice.
"""

import logging
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.format.footer import BLOOM_FILTER, MIN_KEY
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.bloom import BloomSearch
from pyhudi.index.hits import KeyBounds
from pyhudi.storage.local import LocalStorage
from tests.support.golden_tables import GoldenTables

WRITABLE = ("cow_part_v8_h102", "cow_sql_v8_h102")


def copy_of(golden: GoldenTables, name: str, folder: Path) -> HudiTable:
    path = folder / name
    shutil.copytree(golden.get(name).path, path)
    return HudiTable.open(path)


def groups(table: HudiTable) -> set[str]:
    return {path.rpartition("/")[2].split("_")[0] for path in table.scan().files()}


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("name", WRITABLE)
def test_an_upsert_finds_every_key_by_their_filters(
    golden: GoldenTables, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, index: str
) -> None:
    table = copy_of(golden, name, tmp_path)
    before, files = table.scan(meta_fields=False).to_arrow(), groups(table)
    with caplog.at_level(logging.INFO, "pyhudi"):
        result = table.upsert(before, options={"hoodie.index.type": index})
    assert (result.inserted, result.updated, result.deleted) == (0, len(before), 0)
    assert groups(table) == files
    assert [record.getMessage() for record in caplog.records if "Bloom" in record.getMessage()] == []


def names_with_filters(golden: GoldenTables) -> list[Path]:
    names = ("cow_part_v6_h0150", "cow_part_v8_h102", "cow_part_v9_h120", "cow_global_bloom_v9_h120")
    files = [file for name in names for file in sorted(golden.get(name).path.rglob("*.parquet"))]
    return [file for file in files if BLOOM_FILTER.encode() in (pq.read_metadata(file).metadata or {})]


def test_each_file_of_theirs_holds_what_its_filter_and_range_say(golden: GoldenTables) -> None:
    files = names_with_filters(golden)
    assert len(files) >= 12
    for file in files:
        storage = LocalStorage(str(file.parent))
        keys = pq.read_table(file, columns=[RECORD_KEY]).column(RECORD_KEY).combine_chunks()
        others = pa.array([f"{key}?" for key in keys.to_pylist()])
        assert MIN_KEY.encode() in pq.read_metadata(file).metadata
        for prunes in (True, False):
            search = BloomSearch(prunes)
            wanted = search.encode(pa.concat_arrays([others, keys])).dictionary
            found = wanted.take(pa.array(next(search.find(storage, [file.name], wanted)).numbers))
            assert sorted(found.to_pylist()) == sorted(set(keys.to_pylist()))
            ends = pc.min_max(others).as_py()
            assert search.may_hold(storage, [file.name], KeyBounds(ends["min"], ends["max"], others)) == [False]


def test_keys_are_read_where_a_filter_is_damaged(
    golden: GoldenTables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = copy_of(golden, "cow_part_v8_h102", tmp_path)
    for path in table.scan().files():
        file = tmp_path / "cow_part_v8_h102" / path
        footer = pq.read_metadata(file).metadata
        content, text = file.read_bytes(), footer[BLOOM_FILTER.encode()]
        assert content.count(text[:200]) == 1
        file.write_bytes(content.replace(text[:200], b"~" * 200))
    before, files = table.scan(meta_fields=False).to_arrow(), groups(table)
    with caplog.at_level(logging.WARNING, "pyhudi"):
        result = table.upsert(before, options={"hoodie.index.type": "BLOOM"})
    assert result.updated == len(before)
    assert groups(table) == files
    assert len([record for record in caplog.records if "instead of its Bloom filter" in record.getMessage()]) == len(
        files
    )
    caplog.clear()
    assert table.upsert(before, options={"hoodie.index.type": "BLOOM"}).updated == len(before)
    assert caplog.records == [], "the filters were made anew"
