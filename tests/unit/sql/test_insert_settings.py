"""An INSERT could write by another operation than the session's options and the table ask for."""

from dataclasses import fields

import pytest

from pyhudi.errors import Invalid
from pyhudi.options.entries import Verdict
from pyhudi.options.names import check_known
from pyhudi.options.verdicts import option_verdicts
from pyhudi.sql.insert_settings import OF_SQL, InsertSettings

EACH = [
    ("operation", "hoodie.spark.sql.insert.into.operation", "BULK_INSERT", "bulk_insert"),
    ("overwrite_mode", "hoodie.datasource.overwrite.mode", "dynamic", "DYNAMIC"),
    ("is_bulk", "hoodie.sql.bulk.insert.enable", "true", True),
    ("mode", "hoodie.sql.insert.mode", "Strict", "strict"),
]


@pytest.mark.parametrize("field,option,text,value", EACH)
def test_an_option_arrives_in_its_field_and_nowhere_else(field: str, option: str, text: str, value: object) -> None:
    check_known(option)
    settings, default = InsertSettings.from_options({option: text}), InsertSettings()

    assert getattr(settings, field) == value
    others = [f.name for f in fields(settings) if f.name != field]
    assert all(getattr(settings, name) == getattr(default, name) for name in others)


def test_a_strict_bulk_insert_is_refused_where_keys_could_repeat() -> None:
    settings = InsertSettings(is_bulk=True, mode="strict")

    with pytest.raises(Invalid, match="stores a key twice"):
        settings.operation_for(has_keys=True, has_ordering=False, drops=False, combines=False)
    assert settings.operation_for(has_keys=False, has_ordering=False, drops=False, combines=False) == "bulk_insert"


def test_every_field_has_an_option() -> None:
    assert {f.name for f in fields(InsertSettings)} == {field for field, *_ in EACH}
    assert {option for _, option, *_ in EACH} == OF_SQL


def test_the_operation_of_sql_is_a_setting() -> None:
    (found,) = option_verdicts("spark.sql.insert.into.operation")
    assert found.verdict is Verdict.SETTING


@pytest.mark.parametrize(
    "options,has_keys,has_ordering,drops,expected",
    [
        ({}, True, True, False, "upsert"),
        ({}, True, False, False, "insert"),
        ({}, False, False, False, "insert"),
        ({}, True, True, True, "insert"),
        ({"hoodie.spark.sql.insert.into.operation": "bulk_insert"}, True, True, False, "bulk_insert"),
        ({"hoodie.spark.sql.insert.into.operation": "upsert"}, True, False, False, "upsert"),
        ({"hoodie.spark.sql.insert.into.operation": "upsert"}, False, False, False, "insert"),
        ({"hoodie.sql.bulk.insert.enable": "true"}, True, True, False, "bulk_insert"),
        ({"hoodie.sql.insert.mode": "non-strict"}, True, True, False, "insert"),
        ({"hoodie.sql.insert.mode": "upsert"}, True, False, False, "insert"),
        ({"hoodie.combine.before.insert": "true"}, True, False, False, "insert"),
        ({"hoodie.sql.insert.mode": "upsert", "hoodie.combine.before.insert": "true"}, True, False, False, "upsert"),
        ({"hoodie.sql.insert.mode": "upsert", "hoodie.combine.before.insert": "true"}, False, False, False, "insert"),
    ],
)
def test_the_operation_is_as_options_and_table_say(
    options: dict[str, str], has_keys: bool, has_ordering: bool, drops: bool, expected: str
) -> None:
    combines = "hoodie.combine.before.insert" in options
    settings = InsertSettings.from_options(options)

    found = settings.operation_for(has_keys=has_keys, has_ordering=has_ordering, drops=drops, combines=combines)
    assert found == expected


def test_a_strict_insert_refuses_stored_keys() -> None:
    assert InsertSettings.from_options({"hoodie.sql.insert.mode": "strict"}).duplicates() == {
        "hoodie.datasource.insert.dup.policy": "fail"
    }
    assert InsertSettings().duplicates() == {}


@pytest.mark.parametrize("option", sorted(OF_SQL))
def test_a_bad_value_is_refused_by_name(option: str) -> None:
    with pytest.raises(Invalid, match=f"option '{option}'='nonsense'"):
        InsertSettings.from_options({option: "nonsense"})
