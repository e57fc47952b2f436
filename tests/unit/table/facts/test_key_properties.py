"""A new table could store other keys than its creator meant: its rows then lie where no other writer looks."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.table.facts.key_properties import OUTPUT_ZONE, PREFIX, key_properties
from pyhudi.versions import VERSIONS

CLASS = "hoodie.datasource.write.keygenerator.class"
KIND = "hoodie.table.keygenerator.type"
FIELDS = "hoodie.datasource.write.partitionpath.field"
TIMES = {f"{PREFIX}timestamp.type": "EPOCHMILLISECONDS", f"{PREFIX}output.dateformat": "yyyyMM"}


def stored(
    key: Sequence[str] = ("id",), partitions: Sequence[str] = (), *, version: int = 8, **options: str
) -> dict[str, str]:
    given = {name.replace("__", "."): text for name, text in options.items()}
    return key_properties(
        record_key=tuple(key), partition_by=tuple(partitions), version=VERSIONS[version], options=given
    )


@pytest.mark.parametrize("key, partitions, kind", [
    (("id",), (), "NON_PARTITION"), (("id", "n"), (), "NON_PARTITION"), (("id",), ("city",), "SIMPLE"),
    (("id", "n"), ("city",), "COMPLEX"), (("id",), ("city", "day"), "COMPLEX"), ((), ("city",), "SIMPLE"),
    ((), ("city", "day"), "COMPLEX"), ((), (), "NON_PARTITION"), (("id",), ("day:TIMESTAMP",), "CUSTOM"),
    (("id", "n"), ("city:simple", "day:timestamp"), "CUSTOM"),
])  # fmt: skip
def test_columns_imply_the_key_generator(key: tuple[str, ...], partitions: tuple[str, ...], kind: str) -> None:
    found = stored(key, partitions)
    assert found[KIND] == kind
    assert found.get("hoodie.table.recordkey.fields", "") == ",".join(key)


@pytest.mark.parametrize("name, text", [
    (CLASS, "org.apache.hudi.keygen.TimestampBasedKeyGenerator"), (KIND, "TIMESTAMP"),
    ("hoodie.datasource.write.keygenerator.type", "timestamp"),
    ("hoodie.table.keygenerator.class", "org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator"),
])  # fmt: skip
def test_a_key_generator_is_named_as_apache_hudi_names_it(name: str, text: str) -> None:
    found = key_properties(record_key=("id",), partition_by=("ms",), version=VERSIONS[8], options={name: text, **TIMES})
    assert found[KIND] == "TIMESTAMP"
    assert found["hoodie.table.partition.fields"] == "ms"


def test_kinds_of_partition_columns_are_stored_from_version_8() -> None:
    partitions = ("city:simple", "day:timestamp")
    assert stored(partitions=partitions, version=9)["hoodie.table.partition.fields"] == "city:SIMPLE,day:TIMESTAMP"
    assert stored(partitions=partitions, version=6)["hoodie.table.partition.fields"] == "city,day"


def test_kinds_may_come_from_the_option() -> None:
    options = {FIELDS: "city:SIMPLE,day:TIMESTAMP", KIND: "CUSTOM"}
    found = key_properties(record_key=("id",), partition_by=("city", "day"), version=VERSIONS[8], options=options)
    assert found["hoodie.table.partition.fields"] == "city:SIMPLE,day:TIMESTAMP"


def test_numbers_get_a_zone_that_every_writer_shares() -> None:
    options = {KIND: "TIMESTAMP", **TIMES}
    assert (
        key_properties(record_key=("id",), partition_by=("ms",), version=VERSIONS[8], options=options)[OUTPUT_ZONE]
        == "UTC"
    )
    for name in ("timezone", "output.timezone"):
        more = {**options, PREFIX + name: "GMT+8"}
        found = key_properties(record_key=("id",), partition_by=("ms",), version=VERSIONS[8], options=more)
        assert OUTPUT_ZONE not in found


@pytest.mark.parametrize("partitions, options", [(("city",), {KIND: "CUSTOM"}), (("city:SIMPLE", "day"), {})])
def test_a_column_without_a_kind_is_simple_to_a_custom_key_generator(
    partitions: tuple[str, ...], options: dict[str, str]
) -> None:
    """Seen: 1.2.0."""
    found = key_properties(record_key=("id",), partition_by=partitions, version=VERSIONS[9], options=options)

    expected = ",".join(f"{name.partition(':')[0]}:SIMPLE" for name in partitions)
    assert found["hoodie.table.partition.fields"] == expected


@pytest.mark.parametrize("key, partitions, options, said", [
    (("id",), ("city",), {KIND: "NON_PARTITION"}, "no partition column"),
    (("id", "n"), ("city",), {KIND: "SIMPLE"}, "one key column"),
    (("id",), ("a", "b"), {KIND: "TIMESTAMP"}, "one partition column"),
    (("id",), (), {KIND: "TIMESTAMP"}, "one partition column"),
    (("id",), ("city:DAILY",), {}, "city:DAILY"),
    (("id",), ("city:SIMPLE",), {FIELDS: "city:TIMESTAMP"}, "one kind"),
    (("id",), ("city",), {FIELDS: "day"}, "contradicts"),
    (("id",), ("city:SIMPLE",), {KIND: "COMPLEX"}, "without kinds"),
])  # fmt: skip
def test_columns_that_do_not_fit_are_refused(
    key: tuple[str, ...], partitions: tuple[str, ...], options: dict[str, str], said: str
) -> None:
    with pytest.raises(Invalid, match=said):
        key_properties(record_key=key, partition_by=partitions, version=VERSIONS[8], options=options)


def create(path: Path, partition_by: str | list[str], **more: str) -> HudiTable:
    schema = pa.schema([("id", pa.string()), ("ms", pa.int64()), ("day", pa.string()), ("city", pa.string())])
    return HudiTable.create(path, name="t", record_key="id", partition_by=partition_by, schema=schema, properties=more)


def test_one_spelling_of_each_fact_is_stored(tmp_path: Path) -> None:
    of = create(tmp_path / "t", "ms", **{CLASS: "org.apache.hudi.keygen.TimestampBasedKeyGenerator", **TIMES})
    assert CLASS not in of.properties
    assert of.properties[KIND] == "TIMESTAMP"
    assert of.partition_by == ("ms",)
    assert create(tmp_path / "u", ["city:SIMPLE", "ms:TIMESTAMP"], **TIMES).partition_by == ("city", "ms")


@pytest.mark.parametrize("partition_by, options, said", [
    ("ms", {KIND: "TIMESTAMP"}, r"timestamp\.type"),
    ("ms", {KIND: "TIMESTAMP", f"{PREFIX}timestamp.type": "UNIX_TIMESTAMP"}, r"output\.dateformat"),
    ("ms", {KIND: "TIMESTAMP", **TIMES, f"{PREFIX}timestamp.type": "DATE_STRING",
            f"{PREFIX}input.dateformat": "yyyy"}, "a column of texts"),
    ("day", {KIND: "TIMESTAMP", **TIMES}, "a column of numbers"),
    ("day", {KIND: "TIMESTAMP", **TIMES, f"{PREFIX}timestamp.type": "DATE_STRING"}, r"input\.dateformat"),
])  # fmt: skip
def test_a_table_that_no_row_could_enter_is_not_made(
    tmp_path: Path, partition_by: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Invalid, match=said):
        create(tmp_path / "t", partition_by, **options)
    assert not HudiTable.exists(tmp_path / "t")


@pytest.mark.parametrize("partition_by, pattern", [
    (["city:SIMPLE", "day:TIMESTAMP"], "yyyy/MM"), (["city:SIMPLE", "ms:TIMESTAMP"], "yyyy-MM"),
])  # fmt: skip
def test_partitions_that_apache_hudi_could_not_read_back_are_refused(
    tmp_path: Path, partition_by: list[str], pattern: str
) -> None:
    kind = "DATE_STRING" if "day" in partition_by[1] else "UNIX_TIMESTAMP"
    times = {f"{PREFIX}timestamp.type": kind, f"{PREFIX}input.dateformat": "yyyy-MM-dd", f"{PREFIX}timezone": "UTC"}
    with pytest.raises(Unsupported, match="Apache Hudi cannot"):
        create(tmp_path / "t", partition_by, **times, **{f"{PREFIX}output.dateformat": pattern})


def test_a_key_generator_that_nobody_registered_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="register one of that name"):
        create(tmp_path / "t", "city", **{CLASS: "com.example.MyKeyGenerator"})
