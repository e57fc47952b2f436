"""The first look at a source: whether it makes a table, and which one. Nothing is written before it is done."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.options.names import OWN_PREFIX
from pyhudi.options.read_options import SOURCE_FOLDER
from pyhudi.services.bootstrap.layout import (
    FolderStyle,
    folder_style,
    path_columns,
    refuse_unsteady_paths,
    table_partition,
)
from pyhudi.services.bootstrap.plan import PlacedSource, common_schema
from pyhudi.services.bootstrap.settings import BootstrapSettings
from pyhudi.services.bootstrap.source import ListedSource, SourceCheck, SourceFacts, inspect_source, list_source
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.facts.config import BASE_FORMAT, TableConfig, has_bootstrap_index, table_config
from pyhudi.table.facts.creation import NewTable, new_table_properties
from pyhudi.table.facts.key_properties import bare_name
from pyhudi.table.view.snapshot import key_spec
from pyhudi.txn.action.session import refuse_unwritable
from pyhudi.versions import VERSIONS
from pyhudi.write.input.schema import refuse_unordered_types
from pyhudi.write.settings import WriteSettings

HIVE_STYLE: Final = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODED: Final = "hoodie.datasource.write.partitionpath.urlencode"

_OF_THE_CALL: Final = ("hoodie.bootstrap.", "hoodie.datasource.write.operation", OWN_PREFIX)
"""How options begin that say how the table is made. It does not store them."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the source holds, and the table that it makes. `schema`: of its rows, without meta fields."""

    config: TableConfig
    properties: Mapping[str, str]
    check: SourceCheck
    schema: pa.Schema
    placed: tuple[PlacedSource, ...]


def look_at_source(
    source: StorageLocation, new: NewTable, modes: BootstrapSettings, settings: WriteSettings, executor: Executor
) -> Found:
    """List the source and read the footers of its files. `new`: the table that is asked for.

    Requests: one recursive listing, and two reads for each file; more where keys or partition columns must be looked
    at. Raises: Invalid, CorruptFile for what makes no table.
    """
    storage = open_storage(source)
    listed = list_source(storage)
    folders = {file.folder for file in listed}
    partition_by = tuple(map(bare_name, new.partition_by))
    decodes = modes.decodes_paths
    is_time_based = settings.keys.times is not None
    style = folder_style(folders, partition_by, is_time_based=is_time_based, decodes_paths=decodes)
    properties = _properties(source, new, style, listed[0].extension)
    config = table_config(properties, path=f"new table '{new.name}'")
    refuse_unwritable(config, f"new table '{new.name}'")
    keys = settings.keys.spec(key_spec(config), config)

    partitions = {folder: table_partition(folder, decodes_paths=decodes) for folder in sorted(folders)}
    check = SourceCheck(storage, keys, config.ordering)

    def inspect(file: ListedSource) -> SourceFacts:
        return inspect_source(check, file, partitions[file.folder])

    facts = executor.run(inspect, listed)
    columns = common_schema(facts)
    told = path_columns(tuple(partitions.values()), keys, columns.names)
    refuse_unsteady_paths(partitions.values(), keys, told)
    schema = pa.schema([*columns, *told])
    refuse_unordered_types(schema, config.ordering)

    placed = tuple(PlacedSource(one.file, one.rows, partitions[one.file.folder]) for one in facts if one.rows)
    if not placed:
        raise Invalid(f"{source.uri}: expected rows to bootstrap from, found {len(listed):,} files without any")
    return Found(config, properties, check, schema, placed)


def _properties(source: StorageLocation, new: NewTable, style: FolderStyle, extension: str) -> Mapping[str, str]:
    """The properties of the table. Options that contradict the source are refused. Spec: format/bootstrap.md section 2.

    Raises: Invalid, Unsupported.
    """
    if not has_bootstrap_index(new.properties):
        raise Invalid(
            "options hoodie.bootstrap.index.enable and hoodie.bootstrap.index.type: expected an index of the source "
            "files, without which no reader finds them; leave both out"
        )
    asked = {name: text for name, text in new.properties.items() if not name.startswith(_OF_THE_CALL)}
    flags = {HIVE_STYLE: style.is_hive_style, URL_ENCODED: style.is_url_encoded}
    for name, is_so in flags.items():
        said = asked.get(name, "").strip().lower()
        if said and said != str(is_so).lower() and (is_so or name == HIVE_STYLE):
            raise Invalid(
                f"option '{name}'='{said}': expected '{str(is_so).lower()}', as the source's folders are named"
            )
        asked[name] = said or str(is_so).lower()
    base_format = extension.removeprefix(".").upper()
    if asked.get(BASE_FORMAT, base_format).upper() != base_format:
        raise Invalid(
            f"option '{BASE_FORMAT}'='{asked[BASE_FORMAT]}': expected {base_format}, as the source's files are"
        )
    asked[BASE_FORMAT] = base_format

    made = new_table_properties(replace(new, properties=asked))
    name, kind = VERSIONS[new.table_version].bootstrap_index
    return {**made, SOURCE_FOLDER: stored_uri(source), name: kind}


def stored_uri(location: StorageLocation) -> str:
    """The source as the table's properties have it.

    Seen: a local folder is stored as `file:///a/b`, and its files in the index as `file:/a/b/c`.
    """
    return f"file://{location.uri}" if "://" not in location.uri else location.uri
