"""Deleting a table, with all its files."""

from pyhudi.api.access import table_access
from pyhudi.format.timeline.instant_text import format_instant

_PURPOSE = "dropping the table"


def delete_table(path: str) -> None:
    """Delete the table at `path`, its history, and every file below it. What was there cannot be had back.

    Raises: Conflict while a writer holds the table.
    """
    access = table_access(path)
    with access.guard.acquire(_PURPOSE, format_instant(access.clock.now_ms(), access.process_zone())) as hold:
        hold.confirm()
        access.storage.delete_prefix("")
