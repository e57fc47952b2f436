"""What the settings of a write say of its files."""

from dataclasses import replace

from pyhudi.table.facts.config import TableConfig
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.handles.key_filter import FilterSettings
from pyhudi.write.log_settings import LogSettings
from pyhudi.write.settings import WriteSettings


def base_file_settings(settings: WriteSettings) -> BaseFileSettings:
    return BaseFileSettings(
        compression=settings.compression,
        file_size_max_bytes=settings.file_size_max_bytes,
        row_group_size_bytes=settings.row_group_size_bytes,
        page_size_bytes=settings.page_size_bytes,
        bloom=_filter_settings(settings) if settings.bloom_enabled else None,
        orc=settings.orc,
    )


def log_settings(settings: WriteSettings, config: TableConfig) -> LogSettings:
    """How logs are written. They say where in the base file their rows stand only where readers go by that: readers of
    HFiles find rows by their keys.
    """
    logs = settings.logs.of_version(config.version)
    return replace(logs, writes_positions=False) if config.base_format == "HFILE" else logs


def _filter_settings(settings: WriteSettings) -> FilterSettings:
    return FilterSettings(
        settings.bloom_kind,
        settings.bloom_entries,
        settings.bloom_false_positive_rate,
        settings.bloom_entries_max,
    )
