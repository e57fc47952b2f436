"""A column that one side widened could be one that the other side cannot read: in files that were written again, and in
those that were not. Apache Hudi and pyhudi widen each other's tables here, and go on with what they find."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.promotions import KEYS, WITHIN_OTHERS, WRITABLE, Promotion, rows
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

OPTIONS: dict[str, Any] = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": 100,
}
STAY: dict[str, Any] = {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 8}
CITIES = ("touched", "untouched")


def narrow(promotion: Promotion, city: str) -> pa.Table:
    return rows(promotion.before, promotion.stored, KEYS, city)


def wider(promotion: Promotion, city: str, keys: tuple[str, str]) -> pa.Table:
    return rows(promotion.after, promotion.new, keys, city)


@pytest.mark.parametrize("promotion", WRITABLE, ids=str)
def test_hudi_reads_and_merges_what_we_widened(
    tmp_path: Path, hudi_102: ReferenceHudi, hudi_120: ReferenceHudi, promotion: Promotion
) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts",
        properties={"hoodie.index.bloom.num_entries": "100"},
    )  # fmt: skip
    for city in CITIES:
        table.bulk_insert(narrow(promotion, city))
    table.upsert(wider(promotion, "touched", ("k0", "new")))
    for hudi in (hudi_102, hudi_120):
        assert_same_rows(hudi.read(path), table.scan().to_arrow())
    for hudi, key in ((hudi_102, "k1"), (hudi_120, "k2")):
        hudi.write(path, wider(promotion, "untouched", (key, f"new {key}")), **OPTIONS, **STAY)
        assert_same_rows(hudi.read(path), table.scan().to_arrow())
    assert table.table_version == 8


BY_HUDI = tuple(promotion for promotion in WRITABLE if promotion.name != "string to bytes")
"""Apache Hudi makes text of bytes that come into a column of text."""


@pytest.mark.parametrize("name", ["hudi_102", "hudi_120"])
@pytest.mark.parametrize("promotion", BY_HUDI, ids=str)
def test_we_read_and_merge_what_hudi_widened(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, promotion: Promotion
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "t"
    for city in CITIES:
        hudi.write(path, narrow(promotion, city), **OPTIONS)
    hudi.write(path, wider(promotion, "touched", ("k0", "new")), **OPTIONS)
    table = HudiTable.open(path)
    assert table.schema().field("c").type == promotion.after
    assert_same_rows(table.scan().to_arrow(), hudi.read(path))
    table.upsert(wider(promotion, "untouched", ("k1", "newer")))
    assert_same_rows(table.scan().to_arrow(), hudi.read(path))


def narrowed(table: pa.Table, promotion: Promotion) -> pa.Table:
    """The table with `c` as it was before: what was widened in either way is the same again."""
    return table.set_column(table.schema.get_field_index("c"), "c", table["c"].cast(promotion.before))


@pytest.mark.parametrize("promotion", WITHIN_OTHERS, ids=str)
def test_hudi_102_widens_types_within_others_and_we_read_them_where_it_fails(
    tmp_path: Path, hudi_102: ReferenceHudi, promotion: Promotion
) -> None:
    """Where its other reader does, it widens floats within others bit by bit, others by their text; we all by text."""
    path = tmp_path / "t"
    for city in CITIES:
        hudi_102.write(path, narrow(promotion, city), **OPTIONS)
    hudi_102.write(path, wider(promotion, "touched", ("k0", "new")), **OPTIONS)
    with pytest.raises(ReferenceFailed, match="Nested types with type changes"):
        hudi_102.read(path)
    hudi_102.sql("SET spark.sql.parquet.enableVectorizedReader=false")
    try:
        ours, theirs = HudiTable.open(path).scan().to_arrow(), hudi_102.read(path)
        if "float" in promotion.name:
            untouched = ours.filter(pc.equal(ours["city"], "untouched")).sort_by("id")["c"].to_pylist()
            assert untouched == list(promotion.read)
            ours, theirs = narrowed(ours, promotion), narrowed(theirs, promotion)
        assert_same_rows(ours, theirs)
    finally:
        hudi_102.sql("RESET spark.sql.parquet.enableVectorizedReader")
