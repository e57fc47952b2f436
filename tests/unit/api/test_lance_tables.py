"""A table of Lance files could lose values that the format stores otherwise, or what its files note of their keys."""

from importlib.util import find_spec

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Unsupported
from pyhudi.format.footer import BLOOM_FILTER, MAX_KEY, MIN_KEY
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.slices.base_files.opening import open_base_file
from tests.support.compare import assert_same_rows
from tests.unit.api.test_hfile_tables import some as with_maps

pytestmark = pytest.mark.skipif(find_spec("lance") is None, reason="the package pylance is not there")


def some(ids: range, ts: int, *, without: tuple[str, ...] = ()) -> pa.Table:
    return with_maps(ids, ts).drop_columns(["by", *without])


def a_table(table_type: str = "COPY_ON_WRITE") -> tuple[HudiTable, MemoryStorage]:
    storage = MemoryStorage()
    table = HudiTable.create(
        "unused", name="t", record_key="id", partition_by="part", ordering="ts", table_type=table_type,
        table_version=9, storage=storage, properties={"hoodie.table.base.file.format": "LANCE"},
    )  # fmt: skip
    return table, storage


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("without", [(), ("inner",)], ids=["2.1", "2.0"])
def test_lance_files_hold_what_parquet_files_hold(table_type: str, without: tuple[str, ...]) -> None:
    table, storage = a_table(table_type)
    table.insert(some(range(300), 1, without=without))
    result = table.upsert(some(range(290, 310), 2, without=without))
    assert (result.updated, result.inserted) == (10, 10)
    table.delete(some(range(10), 3))
    expected = pa.concat_tables([some(range(10, 290), 1, without=without), some(range(290, 310), 2, without=without)])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
    if table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        assert_same_rows(table.scan(query="read_optimized", meta_fields=False).to_arrow(), expected)

    (path, *_) = files = table.scan().files()
    assert all(path.endswith(".lance") for path in files)
    content = storage.get(path)
    assert content.endswith(b"LANC")
    assert content[-8:-4] == (b"\x00\x00\x03\x00" if without else b"\x02\x00\x01\x00")
    file = open_base_file(storage, path)
    keys = sorted(file.read(["_hoodie_record_key"]).column(0).to_pylist())
    low, high = (file.entries[name.encode()].decode() for name in (MIN_KEY, MAX_KEY))
    assert {low, high} <= set(keys)
    bloom = BloomFilter.decode("DYNAMIC_V0", file.entries[BLOOM_FILTER.encode()], path=path)
    assert bloom.may_contain(pa.array(keys)).to_pylist() == [True] * len(keys)
    file.close()

    late = table.upsert(some(range(300, 301), 5, without=without), options={"hoodie.index.type": "BLOOM"})
    assert (late.updated, late.inserted) == (1, 0)
    assert table.scan(where="ts = 5").count() == 1


def test_a_map_is_refused_before_a_write() -> None:
    table, storage = a_table()
    with pytest.raises(Unsupported, match=r"column 'by' of type map.*Lance files hold no maps"):
        table.insert(with_maps(range(3), 1))
    assert not [f for f in storage.list("", recursive=True) if not f.path.startswith(".hoodie/")]
