"""Procedures that make tables of existing files, and show what such a table was made of."""

from typing import Any, Final

from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid, Unsupported
from pyhudi.inspect.bootstrap import SourceMapping, read_bootstrap_partitions, read_source_mappings
from pyhudi.options.table_facts import Fact
from pyhudi.spark.procedures.procedure import (
    FILTER,
    PATH,
    REQUIRED,
    TABLE,
    Argument,
    Invocation,
    Procedure,
    Row,
    flag,
    limit,
    number,
)
from pyhudi.spark.table_facts import fact_of, stated_facts
from pyhudi.sql.words import Cursor
from pyhudi.versions import NEW_TABLE_VERSION

_INDEX: Final = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_SELECTOR: Final = "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector"
_KEYS: Final = "org.apache.hudi.keygen.SimpleKeyGenerator"
_ROWS: Final = "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider"
_PAYLOAD: Final = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
_FIXED: Final = {
    "bootstrap_index_class": _INDEX, "full_bootstrap_input_provider": _ROWS, "schema_provider_class": "",
    "enable_hive_sync": False, "props_file_path": "",
}  # fmt: skip
"""Arguments of which only the default can be."""

_OF_OPTIONS: Final = (Fact.VERSION, Fact.ORDERING)
"""Facts of the new table that no argument states: options and the session do."""

_SORTED_BY: Final = {
    "partition": lambda one: one.partition, "file_id": lambda one: one.file_id,
    "source_base_path": lambda one: one.source_folder, "source_partition": lambda one: one.source_partition,
    "source_file": lambda one: one.source_file,
}  # fmt: skip


def _run_bootstrap(call: Invocation) -> list[Row]:
    """The table gets no entry in the catalog: `CREATE TABLE … LOCATION` makes one. Where a table lies already, none is
    made, whatever `bootstrap_overwrite` says.
    """
    for name, only in _FIXED.items():
        if call[name] != only:
            raise Unsupported(f"CALL run_bootstrap: {name} => '{call[name]}': expected it to be left out")
    cursor = Cursor(str(call["table"]))
    name = cursor.name("a table's name")[-1]
    cursor.end()
    said = call.options()
    given = {**call.session.session_options, **said}
    facts = stated_facts({option: text for option, text in given.items() if fact_of(option) in _OF_OPTIONS})
    options = {option: text for option, text in said.items() if fact_of(option) not in _OF_OPTIONS}
    options.setdefault("hoodie.bootstrap.mode.selector", str(call["selector_class"]))
    properties: dict[str, Any] = {"hoodie.table.base.file.format": str(call["base_file_format"]).upper()}
    if call["payload_class"] != _PAYLOAD:
        properties["hoodie.datasource.write.payload.class"] = call["payload_class"]
    generator = str(call["key_generator_class"])
    if generator != _KEYS:
        by = "type" if generator.isupper() else "class"
        properties[f"hoodie.datasource.write.keygenerator.{by}"] = generator
    partition_by = [one.strip() for one in str(call["partition_path_field"]).split(",") if one.strip()]
    HudiTable.bootstrap(
        str(call["bootstrap_path"]), str(call["base_path"]), name=name, ordering=facts.ordering,
        table_version=facts.version or NEW_TABLE_VERSION,
        record_key=[one.strip() for one in str(call["rowKey_field"]).split(",")], partition_by=partition_by or None,
        table_type=str(call["table_type"]).upper(), properties=properties, options=options, spark=call.spark,
    )  # fmt: skip
    return [(0,)]


def _show_bootstrap_mapping(call: Invocation) -> list[Row]:
    sort_by = str(call["sort_by"])
    if sort_by not in _SORTED_BY:
        raise Invalid(f"CALL {call.procedure}: sort_by => '{sort_by}': expected one of {', '.join(_SORTED_BY)}")
    file_ids = {one.strip() for one in str(call["file_ids"]).split(",") if one.strip()}
    found: list[SourceMapping] = list(read_source_mappings(call.table, str(call["partition_path"]), file_ids))
    found.sort(key=_SORTED_BY[sort_by], reverse=bool(call["desc"]))
    return call.limited(
        (one.partition, one.file_id, one.source_folder, one.source_partition, one.source_file) for one in found
    )


def _show_bootstrap_partitions(call: Invocation) -> list[Row]:
    return [(partition,) for partition in read_bootstrap_partitions(call.table)]


BOOTSTRAP: dict[str, Procedure] = {
    "run_bootstrap": Procedure(
        "make a table of a folder of files",
        (Argument("table", REQUIRED), Argument("table_type", REQUIRED), Argument("bootstrap_path", REQUIRED),
         Argument("base_path", REQUIRED), Argument("rowKey_field", REQUIRED), Argument("base_file_format", "PARQUET"),
         Argument("partition_path_field", ""), Argument("bootstrap_index_class", _INDEX),
         Argument("selector_class", _SELECTOR), Argument("key_generator_class", _KEYS),
         Argument("full_bootstrap_input_provider", _ROWS), Argument("schema_provider_class", ""),
         Argument("payload_class", _PAYLOAD), number("parallelism", 1500), flag("enable_hive_sync"),
         Argument("props_file_path", ""), flag("bootstrap_overwrite"), Argument("options")), "status int",
        _run_bootstrap,
    ),
    "show_bootstrap_mapping": Procedure(
        "the source file of each base file that a bootstrap made",
        (TABLE, PATH, Argument("partition_path", ""), Argument("file_ids", ""), limit(10),
         Argument("sort_by", "partition"), flag("desc"), FILTER),
        "partition string, file_id string, source_base_path string, source_partition string, source_file string",
        _show_bootstrap_mapping,
    ),
    "show_bootstrap_partitions": Procedure(
        "the partitions that a bootstrap made", (TABLE, PATH, FILTER), "indexed_partitions string",
        _show_bootstrap_partitions,
    ),
}  # fmt: skip
