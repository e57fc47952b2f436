"""A copied row group could be one that its new file must not hold: other columns, another codec, rows that a log
deletes. Its new file could tell wrong places, bounds or keys, which only some readers notice.

What is copied is compared byte by byte with its source; what a reader makes of it, with what decoding makes of it."""

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.format.footer import KeyFooter
from pyhudi.services.clustering import inputs
from pyhudi.write.clustering import copies

PLAN = "hoodie.clustering.plan.strategy"
META_NAME = "_hoodie_file_name"
EXECUTIONS = "org.apache.hudi.client.clustering.run.strategy"


def a_table(path: Path, **properties: object) -> HudiTable:
    return HudiTable.create(
        path, name="t", record_key="id", partition_by="city",
        properties={"hoodie.parquet.small.file.limit": "0", **properties},
    )  # fmt: skip


def rows(start: int, stop: int, **more: object) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": [f"k{n:05}" for n in numbers],
            "city": ["oslo"] * len(numbers),
            "v": [None if n % 7 == 0 else n * 37 % 1_000 for n in numbers],
            "note": [f"{n % 5}" for n in numbers],
            "tags": [None if n % 3 else [n, None] for n in numbers],
            "home": [{"a": n, "b": None if n % 2 else "x"} for n in numbers],
            **more,
        }
    )


def files(path: Path, requested: str | None) -> list[Path]:
    assert requested is not None
    return sorted(file for file in (path / "oslo").glob("*.parquet") if requested in file.name)


def pages(file: Path) -> list[dict[str, bytes]]:
    """The bytes of each column's pages, row group by row group."""
    content, footer = file.read_bytes(), pq.read_metadata(file)
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = [group.column(at) for at in range(group.num_columns)]
        starts = [
            chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset for chunk in chunks
        ]
        found.append(
            {
                chunk.path_in_schema: content[start : start + chunk.total_compressed_size]
                for chunk, start in zip(chunks, starts, strict=True)
            }
        )
    return found


def statistics(file: Path) -> list[object]:
    footer = pq.read_metadata(file)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [
        (column.path_in_schema, None if column.statistics is None else column.statistics.to_dict())
        for group in groups
        for column in (group.column(at) for at in range(group.num_columns))
        if column.path_in_schema != META_NAME
    ]


def stored(table: HudiTable) -> pa.Table:
    return table.scan().to_arrow().sort_by("id").drop_columns(META_NAME)


def test_small_files_are_joined_page_by_page(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    for turn in range(3):
        table.insert(rows(100 * turn, 100 * turn + 100))
    old = sorted((tmp_path / "oslo").glob("*.parquet"))
    before, keys = stored(table), [KeyFooter.parse(pq.read_metadata(file).metadata) for file in old]

    result = table.cluster()

    (new,) = files(tmp_path, result.requested)
    copied = pages(new)
    by_rows = {group["v"]: group for file in old for group in pages(file)}
    for group in copied:
        source = by_rows[group["v"]]
        assert {name for name in group if group[name] != source[name]} == {META_NAME}
    assert sorted(map(str, statistics(new))) == sorted(map(str, [one for file in old for one in statistics(file)]))
    assert stored(table).equals(before)
    assert set(pq.read_table(new, columns=[META_NAME]).column(0).to_pylist()) == {new.name}

    noted = KeyFooter.parse(pq.read_metadata(new).metadata)
    assert noted.key_range == ("k00000", "k00299")
    bloom = noted.decode_bloom(path="new")
    assert bloom is not None
    assert all(bloom.may_contain(before.column("id")).to_pylist())
    assert sum(bloom.may_contain(pa.array([f"x{n}" for n in range(2_000)])).to_pylist()) == 0
    assert len({one.bloom_text for one in (*keys, noted)}) == 4
    assert table.upsert(rows(250, 310)).updated == 50
    assert table.metadata.validate().differences == ()


def test_readers_that_skip_pages_find_every_row(tmp_path: Path) -> None:
    """PyArrow and this process skip by bounds of row groups; the page indexes lie where the footer says."""
    table = a_table(tmp_path)
    for turn in range(2):
        table.bulk_insert(rows(30_000 * turn, 30_000 * turn + 30_000))
    before = stored(table)
    (new,) = files(tmp_path, table.cluster().requested)
    chunk = pq.read_metadata(new).row_group(1).column(0)
    assert chunk.has_column_index
    assert chunk.has_offset_index
    wanted = [("v", "=", 333)]
    found = pq.read_table(new, filters=wanted).num_rows
    assert found == len([v for v in before.column("v").to_pylist() if v == 333])
    assert table.scan(where="id = 'k45678'").to_arrow().num_rows == 1


def test_large_files_are_split_at_their_row_groups(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    for turn in range(9):
        table.insert(rows(2_000 * turn, 2_000 * turn + 2_000))
    (old,) = files(tmp_path, table.cluster().requested)
    before, size = stored(table), old.stat().st_size
    assert pq.read_metadata(old).num_row_groups == 9

    result = table.cluster(options={f"{PLAN}.target.file.max.bytes": str(size // 3)})

    new = files(tmp_path, result.requested)
    assert sorted(group["v"] for file in new for group in pages(file)) == sorted(group["v"] for group in pages(old))
    assert 3 <= len(new) <= 4
    assert max(pq.read_metadata(file).num_row_groups for file in new) <= 3
    assert stored(table).equals(before)
    for file in new:
        noted = KeyFooter.parse(pq.read_metadata(file).metadata)
        ids = pq.read_table(file, columns=["id"]).column(0).to_pylist()
        assert noted.key_range == (min(ids), max(ids))
    assert table.metadata.validate().differences == ()


def why_decoded(table: HudiTable, caplog: pytest.LogCaptureFixture, options: Mapping[str, str] | None = None) -> str:
    before = stored(table)
    with caplog.at_level("INFO", "pyhudi"):
        result = table.cluster(options=options)
    assert result.files
    assert stored(table).select(before.column_names).equals(before)
    assert table.metadata.validate().differences == ()
    found = [re.sub(r"^.*not copied: (?:oslo/[^:]*: )?", "", record.message) for record in caplog.records]
    return next((one for one, record in zip(found, caplog.records, strict=True) if "not copied" in record.message), "")


def test_another_codec_is_decoded_if_one_is_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = a_table(tmp_path)
    for turn, codec in enumerate(["gzip", "gzip", "snappy"]):
        table.insert(rows(10 * turn, 10 * turn + 10), options={"hoodie.parquet.compression.codec": codec})
        if turn == 1:
            assert why_decoded(table, caplog) == ""  # nobody asks for another one
            (new,) = files(tmp_path, table.timeline()[-1].requested)
            assert {pq.read_metadata(new).row_group(0).column(at).compression for at in range(10)} == {"GZIP"}
    assert "with one codec" in why_decoded(table, caplog)
    caplog.clear()
    table.insert(rows(90, 99))
    assert "with gzip" in why_decoded(table, caplog, {"hoodie.parquet.compression.codec": "gzip"})


def test_files_of_other_columns_are_decoded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = a_table(tmp_path)
    table.insert(rows(0, 10))
    table.insert(rows(10, 20, more=[None, *range(9)]))
    why = why_decoded(table, caplog)
    assert "not those of the table" in why or "not stored as those of" in why


def test_names_that_were_exchanged_are_not_copied_under_the_other(tmp_path: Path) -> None:
    """The files' columns look the same; what they mean is not."""
    table = a_table(tmp_path)
    for turn in range(2):
        table.insert(rows(10 * turn, 10 * turn + 10, w=[n * 100 for n in range(10)]))
    for old, new in (("v", "x"), ("w", "v"), ("x", "w")):
        table.alter().rename(old, new).commit()
    before = stored(table)
    assert table.cluster().files == 1
    assert stored(table).equals(before)


def test_many_tiny_row_groups_are_joined(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "SMALL_GROUPS_MAX", 2)
    table = a_table(tmp_path)
    for turn in range(3):
        table.insert(rows(10 * turn, 10 * turn + 10))
    assert "3 row groups of" in why_decoded(table, caplog)
    (new,) = files(tmp_path, table.timeline()[-1].requested)
    assert pq.read_metadata(new).num_row_groups == 1


def test_a_damaged_source_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    for turn in range(2):
        table.insert(rows(10 * turn, 10 * turn + 10))
    damaged = sorted((tmp_path / "oslo").glob("*.parquet"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(Exception, match=damaged.name):
        table.cluster()
    assert len(list((tmp_path / "oslo").glob("*.parquet"))) == 2


SINGLE = {
    f"{PLAN}.class": "org.apache.hudi.client.clustering.plan.strategy.SparkSingleFileSortPlanStrategy",
    "hoodie.clustering.execution.strategy.class": f"{EXECUTIONS}.SparkSingleFileSortExecutionStrategy",
    f"{PLAN}.sort.columns": "v",
    f"{PLAN}.target.file.max.bytes": "1000",
}


def test_each_file_is_sorted_in_itself_and_stays_one_file(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    for turn in range(3):
        table.insert(rows(1_000 * turn, 1_000 * turn + 1_000))
    before = stored(table)

    result = table.cluster(options={**SINGLE, f"{PLAN}.single.group.clustering.enabled": "false"})

    new = files(tmp_path, result.requested)
    assert (result.file_groups, result.files, len(new)) == (3, 3, 3)
    for file in new:
        found = pq.read_table(file, columns=["id", "v"]).to_pydict()
        assert len({key[:3] for key in found["id"]}) == 1  # of one write
        numbers = [v for v in found["v"] if v is not None]
        assert numbers == sorted(numbers)
    assert stored(table).equals(before)
    assert table.cluster(options={key: text for key, text in SINGLE.items() if "sort.columns" not in key}).files == 0


def test_single_files_are_refused_for_groups_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = a_table(tmp_path)
    for turn in range(2):
        table.insert(rows(10 * turn, 10 * turn + 10))
    with pytest.raises(Invalid, match=r"expected 'hoodie.clustering.plan.strategy.class'='SparkSingleFileSortPlan"):
        table.cluster(options={key: text for key, text in SINGLE.items() if key != f"{PLAN}.class"})
    table.schedule_clustering()
    monkeypatch.setattr(inputs, "is_by_single_files", lambda plan: True)
    with pytest.raises(Invalid, match="found 2 slices that become 1 files"):
        table.run_clusterings()
