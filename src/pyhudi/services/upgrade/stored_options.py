"""The options that a table stores for its writers, at another version."""

from collections.abc import Mapping
from typing import Final

from pyhudi.errors import Invalid
from pyhudi.metadata.kinds import registry
from pyhudi.options.names import WRITE_VERSION, canonical_name
from pyhudi.options.resolve import merge_options
from pyhudi.services.metadata.indexes import refuse_absent
from pyhudi.services.upgrade.facts import Properties
from pyhudi.table.facts.config import TableConfig
from pyhudi.versions import LogNaming, TableVersion
from pyhudi.write.settings import CONCURRENCY_MODE, WriteSettings

_LOG_COMPACTION: Final = "hoodie.metadata.log.compaction.enable"


def unfit_options(properties: Properties, target: TableVersion) -> set[str]:
    """The properties for which every write of the other version would be refused.

    Example: version 6 has no statistics of partitions, so `hoodie.metadata.index.partition.stats.enable=true`.
    """
    settings = WriteSettings.from_options(merge_options(write=None, opened=None, table=properties))
    unfit = {WRITE_VERSION, *_absent_indexes(settings, target).values()}
    if not target.has_metadata_log_compaction:
        unfit.add(_LOG_COMPACTION)
    if settings.is_non_blocking and target.log_naming is not LogNaming.AFTER_WRITE:
        unfit.add(CONCURRENCY_MODE)
    return {name for name in properties if canonical_name(name) in unfit}


def refuse_unfit_options(config: TableConfig, callers: Mapping[str, str]) -> None:
    """Refuse options of the caller that the other version cannot follow. Nothing has been done yet.

    `config`: the table at the other version. `callers`: the options of the call and of its handle.
    Raises: Invalid for another version; Unsupported for indexes and services that the version does not have.
    """
    asked = callers.get(WRITE_VERSION, "").strip()
    if asked and asked != str(config.version):
        raise Invalid(
            f"table '{config.name}', which is to get version {config.version}: option '{WRITE_VERSION}'='{asked}' asks "
            "for another one; leave the option out"
        )
    refuse_absent(config, WriteSettings.from_options(callers))


def _absent_indexes(settings: WriteSettings, version: TableVersion) -> Mapping[str, str]:
    """The indexes that the settings ask for and the version does not have -> the option that asks."""
    is_partitioned = bool(settings.indexes.partitioned_record_index)
    return {
        name: option
        for name, option in registry.wanted_by(settings.indexes, {}, version).items()
        if registry.absent_forms([name], version, is_partitioned=is_partitioned)
    }
