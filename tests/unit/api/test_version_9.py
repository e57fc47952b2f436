"""A table of version 9 could be written with what only version 8 has: keys, properties, the metadata table's schema."""

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import StepClock, problems_on

ROWS = pa.table({"id": ["a", "b"], "x": ["1", "2"], "y": ["p", "q"], "n": [1, 2]})


def written(version: int, storage: MemoryStorage, *, partition_by: tuple[str, ...] = ()) -> HudiTable:
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by=partition_by, table_version=version, storage=storage,
        clock=StepClock(), properties={"hoodie.metadata.compact.max.delta.commits": "1"},
    )  # fmt: skip
    for _ in range(3):
        table.upsert(ROWS)
    return table


@pytest.mark.parametrize(
    "version,partition_by,keys",
    [(8, ("x", "y"), ["a", "b"]), (9, ("x", "y"), ["id:a", "id:b"]), (9, ("x",), ["a", "b"]), (9, (), ["a", "b"])],
)
def test_a_complex_key_names_its_only_field_from_version_9_on(
    version: int, partition_by: tuple[str, ...], keys: list[str]
) -> None:
    table = written(version, MemoryStorage(), partition_by=partition_by)
    assert sorted(table.scan().to_arrow()["_hoodie_record_key"].to_pylist()) == keys
    assert table.lookup(keys[:1]).num_rows == 1
    assert table.lookup(ROWS.select(["id"])).num_rows == 2


@pytest.mark.parametrize("version", [8, 9])
def test_the_metadata_table_has_the_version_and_the_record_schema_of_its_table(version: int) -> None:
    storage = MemoryStorage()
    table = written(version, storage)
    assert table.table_version == version
    assert f"hoodie.table.version={version}\n".encode() in storage.get(".hoodie/metadata/.hoodie/hoodie.properties")
    bases = [file.path for file in storage.list(".hoodie/metadata/files") if file.path.endswith(".hfile")]
    assert len(bases) >= 2
    schemas = {HFileReader(storage.get(path), path=path).schema_text for path in bases}
    assert schemas == {metadata_record_schema(version)}
    assert problems_on(storage, has_metadata_table=True) == []


def test_a_payload_class_may_be_said_with_the_mode_that_it_had() -> None:
    stated = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        "hoodie.write.record.merge.mode": "CUSTOM",
    }
    table = HudiTable.create(
        "", name="t", record_key="id", ordering="n", table_version=9, storage=MemoryStorage(), properties=stated
    )
    table.upsert(ROWS, options=stated)
    late = pa.table({"id": ["a"], "x": pa.nulls(1, pa.string()), "y": ["late"], "n": [5]})
    table.upsert(late, options={**stated, "hoodie.write.record.merge.mode": "custom"})

    assert {"id": "a", "x": "1", "y": "late", "n": 5} in table.scan(meta_fields=False).to_arrow().to_pylist()
    with pytest.raises(Invalid, match="has 'EVENT_TIME_ORDERING' as its merge mode"):
        table.upsert(late, options={"hoodie.write.record.merge.mode": "CUSTOM"})
