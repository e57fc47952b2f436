"""A key generator of the user's could be passed over, so that keys are those of another, or wrong and believed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, Invalid, Unsupported, register_key_generator
from pyhudi.api import creation
from pyhudi.format.keys import own_generators

NAME = "acme.keys.Folded"
CLASS = "hoodie.datasource.write.keygenerator.class"
VERSIONS = (6, 8, 9)


def folded(rows: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Keys in small letters, in the folder of the city's first letter."""
    return pc.utf8_lower(rows.column("id")), pc.utf8_slice_codeunits(rows.column("city"), 0, 1)


register_key_generator(NAME, folded)


def new_table(folder: Path, name: str = NAME, **facts: Any) -> HudiTable:
    more = {CLASS: name, **facts.pop("properties", {})}
    return HudiTable.create(folder / "t", name="t", record_key="id", partition_by="city", properties=more, **facts)


def rows(*of: tuple[str | None, str | None, int]) -> pa.Table:
    ids, cities, values = zip(*of, strict=True)
    return pa.table(
        [pa.array(ids, pa.string()), pa.array(cities, pa.string()), list(values)], names=["id", "city", "v"]
    )


def stored(table: HudiTable, **scan: Any) -> list[tuple[str, str, int]]:
    found = table.scan(columns=["_hoodie_record_key", "_hoodie_partition_path", "v"], **scan).to_arrow().to_pylist()
    return sorted((of["_hoodie_record_key"], of["_hoodie_partition_path"], of["v"]) for of in found)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", VERSIONS)
def test_keys_and_paths_are_those_of_the_function(tmp_path: Path, version: int, kind: str) -> None:
    table = new_table(tmp_path, table_version=version, table_type=kind)
    table.upsert(rows(("A", "oslo", 1), ("b", "rome", 1), ("c", "riga", 1)))
    assert table.upsert(rows(("a", "oslo", 2), ("C", "rome", 2))).updated == 2
    assert table.delete(rows(("B", "riga", 0)).select(["id", "city"])).deleted == 1
    assert stored(table) == [("a", "o", 2), ("c", "r", 2)]
    assert stored(table, where="city = 'rome'") == [("c", "r", 2)], "no path tells a city"
    assert stored(table, where="_hoodie_partition_path = 'o'") == [("a", "o", 2)]
    assert table.lookup(["a"]).num_rows == table.lookup(rows(("A", "oslo", 0))).num_rows == 1
    assert table.update(set={"v": "v + 1"}, where="city = 'oslo'").updated == 1
    with pytest.raises(Invalid, match="whose row did not match"):
        table.merge(rows(("A", "otta", 9)), when_not_matched_insert=True)
    named = {name: text for name, text in table.properties.items() if "keygenerator" in name}
    kinds = {"hoodie.table.keygenerator.type": "USER_PROVIDED"} if version > 6 else {}
    assert named == {"hoodie.table.keygenerator.class": NAME, **kinds}


def test_an_upgrade_and_a_downgrade_keep_the_generator(tmp_path: Path) -> None:
    table = new_table(tmp_path, table_version=6)
    table.upsert(rows(("A", "oslo", 1)))
    table.upgrade(9)
    assert table.properties["hoodie.table.keygenerator.type"] == "USER_PROVIDED"
    assert table.upsert(rows(("a", "oslo", 2))).updated == 1
    table.downgrade(6)
    assert "hoodie.table.keygenerator.type" not in table.properties
    assert table.upsert(rows(("A", "oslo", 3))).updated == 1
    assert stored(table) == [("a", "o", 3)]


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forgets what is registered, as another process knows nothing of it."""
    return lambda: monkeypatch.setattr(own_generators._generators, "_things", {})


@pytest.mark.parametrize("version", VERSIONS)
def test_reading_needs_no_generator_and_writing_does(
    tmp_path: Path, version: int, forgotten: Callable[[], None]
) -> None:
    table = new_table(tmp_path, table_version=version, table_type="MERGE_ON_READ")
    table.upsert(rows(("A", "oslo", 1), ("b", "rome", 1)))
    table.upsert(rows(("a", "oslo", 2)))
    forgotten()
    other = HudiTable.open(table.path)
    assert stored(other) == [("a", "o", 2), ("b", "r", 1)]
    assert stored(other, where="city = 'rome'") == [("b", "r", 1)]
    assert other.incremental().to_arrow().num_rows == 2
    assert other.lookup(["a"]).num_rows == 1
    for call in (lambda: other.upsert(rows(("a", "oslo", 3))), lambda: other.lookup(rows(("a", "oslo", 3)))):
        with pytest.raises(Unsupported, match=f"{NAME}.*register_key_generator"):
            call()


@pytest.mark.parametrize("answer, said", [
    (lambda rows: rows.column("id"), "expected the record keys and the partition paths, found StringArray"),
    (lambda rows: (rows.column("id"), None), "expected partition paths, for the table has partition columns"),
    (lambda rows: (rows.column("id").slice(1), rows.column("city")), "expected 2, one for each row, found 1"),
    (lambda rows: (pa.array([1, 2]), rows.column("city")), "record keys: expected texts, found int64"),
    (lambda rows: (["a", "b"], rows.column("city")), "expected an Arrow array of texts, found list"),
    (lambda rows: rows.column("none"), "raised KeyError"),
    (lambda rows: (pa.array(["a", ""]), rows.column("city")), "found 1 null or empty"),
    (lambda rows: (pa.array(["a", None]), rows.column("city")), "found 1 null or empty"),
    (lambda rows: (rows.column("id"), pa.array(["x", None])), "expected a partition path for each row, found null"),
    (lambda rows: (rows.column("id"), pa.array(["x", "../y"])), r"found '\.\.'"),
    (lambda rows: (rows.column("id"), pa.array(["x", ""])), "partition columns city; found the empty path"),
])  # fmt: skip
def test_an_answer_that_is_none_is_refused(tmp_path: Path, answer: Callable[[Any], Any], said: str) -> None:
    register_key_generator(name := f"bad.{tmp_path.name}", answer)
    table = new_table(tmp_path, name)
    with pytest.raises(Invalid, match=said):
        table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    assert [instant for instant in table.timeline() if instant.completed] == []


def test_a_table_without_partition_columns_takes_no_paths(tmp_path: Path) -> None:
    register_key_generator(name := f"flat.{tmp_path.name}", lambda rows: (pc.utf8_lower(rows.column("id")), None))
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", properties={CLASS: name})
    table.upsert(rows(("A", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    assert stored(table) == [("a", "", 2)]


def test_names_that_mean_something_else_are_refused(tmp_path: Path) -> None:
    for name in ("com.acme.SimpleKeyGenerator", "two words", ""):
        with pytest.raises(Invalid, match="expected a name"):
            register_key_generator(name, folded)
    with pytest.raises(Invalid, match="expected a function"):
        register_key_generator("acme.none", "folded")  # type: ignore[arg-type]
    register_key_generator(NAME, folded)
    with pytest.raises(Invalid, match="already registered"):
        register_key_generator(NAME, test_names_that_mean_something_else_are_refused)  # type: ignore[arg-type]

    plain = HudiTable.create(tmp_path / "u", name="u", record_key="id", partition_by="city")
    with pytest.raises(Invalid, match="has 'SIMPLE' as its key generator"):
        plain.upsert(rows(("a", "x", 1)), options={CLASS: NAME})
    register_key_generator("acme.keys.Other", lambda rows: folded(rows))
    with pytest.raises(Invalid, match=r"acme\.keys\.Other"):
        new_table(tmp_path).upsert(rows(("a", "x", 1)), options={CLASS: "acme.keys.Other"})


def test_a_table_without_meta_fields_and_a_bootstrap_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"hoodie.populate.meta.fields": "false"}
    with pytest.raises(Unsupported, match="key generator OTHER"):
        new_table(tmp_path, properties=properties)

    with monkeypatch.context() as elsewhere:  # as another tool makes it
        elsewhere.setattr(creation, "_refuse_never_written", lambda *_: None)
        table = new_table(tmp_path, properties=properties)
    with pytest.raises(Unsupported, match="key generator OTHER"):
        table.upsert(rows(("a", "x", 1)))
    (tmp_path / "source").mkdir()
    pa.parquet.write_table(rows(("a", "x", 1)), tmp_path / "source" / "a.parquet")
    with pytest.raises(Unsupported, match="bootstrap with a key generator of your own"):
        HudiTable.bootstrap(tmp_path / "source", tmp_path / "v", name="v", record_key="id", properties={CLASS: NAME})
