"""A schema that differs from that of Apache Hudi by one character makes files that differ. Golden files pin the texts
that they state. Here stands what no file pins: each file of a record is read under its name, and an archived entry
holds the records of the timeline's own files.
"""

import json
from importlib import resources
from typing import Any

import pytest

from pyhudi.format.avro.container import parsed_schema
from pyhudi.format.avro.schema_files import schema_of

FILES = [file for file in resources.files("pyhudi.format").joinpath("schemas").iterdir() if file.name.endswith(".avsc")]
ENTRY = {field["name"]: field["type"] for field in json.loads(schema_of("HoodieArchivedMetaEntry"))["fields"]}


def named(schema: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Every named type in a schema, added to `known`."""
    if isinstance(schema, list):
        for one in schema:
            named(one, known)
    elif isinstance(schema, dict):
        if "name" in schema and "fields" in schema:
            known[schema["name"]] = schema
        for key in ("type", "fields", "items", "values"):
            named(schema.get(key), known)
    return known


def whole(schema: Any, known: dict[str, Any]) -> Any:
    """The schema with the definition of each type in place of its name, and without namespaces."""
    if isinstance(schema, str) and schema in known:
        return whole(known[schema], known)
    if isinstance(schema, list):
        return [whole(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    nested = ("type", "fields", "items", "values")
    return {key: whole(value, known) if key in nested else value for key, value in schema.items() if key != "namespace"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_file_holds_the_record_that_it_is_named_after(file: Any) -> None:
    name = file.name.removesuffix(".avsc")
    text = schema_of(name)

    assert json.loads(text)["name"] == name.partition("-")[0]
    assert parsed_schema(text)
    assert json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False) == text


@pytest.mark.parametrize(
    "member",
    [
        "hoodieCommitMetadata", "hoodieCleanMetadata", "hoodieRollbackMetadata", "hoodieSavePointMetadata",
        "hoodieCompactionPlan", "hoodieCleanerPlan", "hoodieReplaceCommitMetadata", "hoodieRequestedReplaceMetadata",
        "hoodieIndexCommitMetadata",
    ],
)  # fmt: skip
def test_an_archived_entry_holds_the_records_of_the_timelines_own_files(member: str) -> None:
    known = named(json.loads(schema_of("HoodieArchivedMetaEntry")), {})
    stored = whole(ENTRY[member][1], known)
    own = json.loads(schema_of(stored["name"]))

    assert stored == whole(own, named(own, {}))
