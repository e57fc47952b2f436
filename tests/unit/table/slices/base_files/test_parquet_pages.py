"""A few rows that are read by their pages could be other rows, have other types, or come of pages that a damaged index
makes up.
"""

import random
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import CorruptFile, HudiTable
from pyhudi.format.parquet.footer import TAIL_SIZE, decode_footer, footer_size
from pyhudi.storage.local import LocalInput
from pyhudi.table.slices.base_files import parquet_pages
from pyhudi.table.slices.base_files.few_rows import rows_at
from pyhudi.table.slices.base_files.parquet import ParquetBaseFile
from pyhudi.table.slices.base_files.parquet_pages import PageReader
from tests.support.golden_tables import GoldenTables

ROWS = 40_000
WRITTEN: dict[str, dict[str, Any]] = {
    "as pyhudi does": {"compression": "zstd", "write_page_index": True},
    "small pages": {"compression": "snappy", "data_page_size": 2_000, "write_batch_size": 64},
    "no dictionaries": {"compression": "none", "use_dictionary": False, "data_page_size": 5_000},
    "pages of version 2": {"compression": "gzip", "data_page_version": "2.0", "data_page_size": 9_000},
    "dictionaries that overflow": {"compression": "lz4", "dictionary_pagesize_limit": 4_000, "data_page_size": 3_000},
}
START = datetime(2024, 1, 1, tzinfo=UTC)


def all_types(count: int, seed: int) -> pa.Table:
    choose = random.Random(seed)

    def some(make: Any) -> list[Any]:
        return [None if choose.random() < 0.1 else make(at) for at in range(count)]

    return pa.table(
        {
            "text": pa.array([f"k{at:07}" for at in range(count)], pa.string()).cast(pa.string()),
            "few": pa.array(some(lambda at: "abc"[at % 3])),
            "wide": pa.array(some(lambda at: "é" * (at % 50))),
            "whole": pa.array(some(lambda at: at - 5), pa.int32()),
            "long": pa.array(some(lambda at: at << 33), pa.int64()),
            "float": pa.array(some(lambda at: at / 3), pa.float32()),
            "yes": pa.array(some(lambda at: at % 2 == 0)),
            "day": pa.array(some(lambda at: date(2024, 1, 1) + timedelta(at % 999))),
            "at": pa.array(some(lambda at: START + timedelta(seconds=at)), pa.timestamp("us", "UTC")),
            "local": pa.array(some(lambda at: datetime(1600, 1, 1) + timedelta(days=at)), pa.timestamp("ms")),
            "price": pa.array(some(lambda at: Decimal(at) / 100), pa.decimal128(12, 2)),
            "raw": pa.array(some(lambda at: bytes([at % 256]) * (at % 9)), pa.binary()),
            "fixed": pa.array(some(lambda at: b"%04d" % (at % 9_999)), pa.binary(4)),
            "large": pa.array(some(lambda at: f"{at}"), pa.large_string()),
            "never": pa.nulls(count, pa.string()),
        }
    )


def write(path: Path, rows: pa.Table, how: str, **more: Any) -> None:
    pq.write_table(rows, path, **{"write_page_index": True, "row_group_size": len(rows), **WRITTEN[how], **more})


def opened(path: Path) -> ParquetBaseFile:
    return ParquetBaseFile(LocalInput(str(path)), path.name)


@pytest.fixture
def is_paged(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call of a file's `rows_at` was answered by pages."""
    found: list[bool] = []
    original = ParquetBaseFile.rows_at

    def noted(self: ParquetBaseFile, *given: Any) -> pa.RecordBatch | None:
        answer = original(self, *given)
        found.append(answer is not None)
        return answer

    monkeypatch.setattr(ParquetBaseFile, "rows_at", noted)
    return found


def read_rows(file: ParquetBaseFile, columns: list[str], group: int, numbers: list[int]) -> pa.Table:
    batches = rows_at(file, columns, group, np.array(numbers, np.int64), use_threads=False)
    return pa.Table.from_batches([batch for _, _, batch in batches])


@pytest.mark.parametrize("how", WRITTEN)
def test_rows_of_pages_are_those_of_the_file(tmp_path: Path, how: str, is_paged: list[bool]) -> None:
    rows = all_types(2 * ROWS, 3)
    write(tmp_path / "f.parquet", rows, how, row_group_size=ROWS)
    choose = random.Random(5)
    with closing(opened(tmp_path / "f.parquet")) as file:
        for count in (1, 1, 2, 5, parquet_pages.ROWS_MAX):
            group, numbers = choose.randrange(2), sorted(choose.sample(range(ROWS), count))
            numbers[-1] = choose.choice((numbers[-1], ROWS - 1))
            columns = choose.sample(rows.schema.names, 6)
            found = read_rows(file, columns, group, numbers)
            expected = rows.select(columns).take(pa.array([group * ROWS + number for number in numbers]))
            assert found.equals(expected.combine_chunks()), (columns, numbers)
    assert is_paged == [True] * 5


@pytest.mark.parametrize(
    "columns,count,more",
    [
        (["text"], parquet_pages.ROWS_MAX + 1, {}),
        (["nested", "text"], 1, {}),
        (["list"], 1, {}),
        (["text"], 1, {"write_page_index": False}),
        (["text"], 1, {"row_group_size": 1_000}),
    ],
)
def test_other_rows_are_decoded_whole(
    tmp_path: Path, columns: list[str], count: int, more: dict[str, Any], is_paged: list[bool]
) -> None:
    rows = all_types(ROWS, 1).select(["text"])
    rows = rows.append_column("nested", pa.array([{"a": at} for at in range(ROWS)]))
    rows = rows.append_column("list", pa.array([[at] for at in range(ROWS)]))
    write(tmp_path / "f.parquet", rows, "as pyhudi does", **more)
    with closing(opened(tmp_path / "f.parquet")) as file:
        found = read_rows(file, columns, 0, list(range(7, 7 + count)))
    assert found.equals(rows.select(columns).slice(7, count).combine_chunks())
    assert is_paged == [False]


def test_a_column_is_told_from_a_field_of_the_same_path(tmp_path: Path) -> None:
    rows = pa.table({"a": [{"b": at} for at in range(ROWS)], "a.b": [-at for at in range(ROWS)]})
    write(tmp_path / "f.parquet", rows, "as pyhudi does")
    with closing(opened(tmp_path / "f.parquet")) as file:
        found = file.rows_at(["a.b"], 0, np.array([5], np.int64))
    assert found is not None
    assert found.column(0).to_pylist() == [-5]


@pytest.mark.parametrize("name", ["cow_cdc_v5_h0131", "cow_clean_archive_v8_h102", "cow_bulk_insert_v9_h120"])
def test_pages_of_files_that_apache_hudi_wrote(tmp_path: Path, name: str) -> None:
    seen = 0
    for path in GoldenTables(tmp_path).get(name).path.rglob("*.parquet"):
        expected = pq.read_table(path, partitioning=None)
        if ".hoodie" in path.parts or not len(expected):
            continue
        flat = [field.name for field in expected.schema if not pa.types.is_nested(field.type)]
        numbers = np.unique([0, len(expected) - 1])
        found = PageReader(LocalInput(str(path)), path.name, expected.schema).rows_at(flat, 0, numbers)
        assert found is not None
        assert pa.Table.from_batches([found]).equals(expected.select(flat).take(pa.array(numbers)).combine_chunks())
        seen += 1
    assert seen


def test_a_damaged_index_of_pages_is_told(tmp_path: Path) -> None:
    rows = all_types(ROWS, 2).select(["text", "whole"])
    write(tmp_path / "f.parquet", rows, "small pages")
    content = (tmp_path / "f.parquet").read_bytes()
    size = footer_size(content[-TAIL_SIZE:], len(content), path="f")
    footer = decode_footer(content[-TAIL_SIZE - size : -TAIL_SIZE], len(content) - TAIL_SIZE - size, path="f")
    place = footer.groups[0].chunks[0].offset_index
    assert place is not None
    choose, told = random.Random(4), list[str]()
    for _ in range(200):
        broken = bytearray(content)
        broken[place[0] + choose.randrange(place[1])] ^= 1 << choose.randrange(8)
        (tmp_path / "g.parquet").write_bytes(broken)
        with closing(opened(tmp_path / "g.parquet")) as file:
            try:
                row = choose.randrange(ROWS)
                assert read_rows(file, ["text"], 0, [row]).equals(rows.select(["text"]).slice(row, 1))
            except CorruptFile as error:
                told.append(str(error))
    assert len(told) > 50
    assert all("g.parquet" in message for message in told)


def test_a_lookup_decodes_the_pages_of_a_row(tmp_path: Path, is_paged: list[bool]) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="text")
    rows = all_types(ROWS, 6)
    table.bulk_insert(rows)
    for key in ("k0000000", "k0020001", f"k{ROWS - 1:07}"):
        expected = rows.slice(int(key[1:]), 1).to_pylist()
        assert table.lookup([key]).select(rows.schema.names).to_pylist() == expected
        assert table.scan(columns=rows.schema.names, where=f"text = '{key}'").to_arrow().to_pylist() == expected
    assert is_paged == [True] * 6


def test_files_elsewhere_are_read_by_row_groups(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", all_types(ROWS, 2), "as pyhudi does")
    with closing(ParquetBaseFile((tmp_path / "f.parquet").open("rb"), "f.parquet")) as file:
        assert file.rows_at(["text"], 0, np.array([1], np.int64)) is None
