"""Sweeping up the temporary files of dead writers, which no listing shows.

When a file is swept. A living writer writes to its temporary file without pause and then renames it, so the file was
written a moment ago. A temporary file last written longer ago than a heartbeat lives belongs to a dead writer. The age
protects writers that are at work, and a task whose driver has died and that does not know it yet. A younger file stays
for a later clean.

Where files are swept. No write lists folders for this alone. The folders of a dead write are swept when the write is
rolled back or its heartbeat is found; the partitions of a clean are swept after the clean.
"""

import logging
from collections.abc import Iterable

from pyhudi.errors import Unavailable
from pyhudi.format.names import HEARTBEATS, HOODIE, METADATA_TABLE, join
from pyhudi.storage.protocol import Storage, sweep
from pyhudi.table.facts.config import TableConfig

log = logging.getLogger("pyhudi")


def sweep_leftovers(
    storage: Storage, config: TableConfig, partitions: Iterable[str], *, now_ms: int, heartbeat_expires_ms: int
) -> int:
    """Sweep partitions, the folders of the table's own files and those of its metadata table.

    Returns how many files were deleted. A failure does not fail the write: the files stay. Storages that leave no
    temporary files are asked nothing.
    """
    folders = [*own_folders(config), *sorted(set(partitions))]
    try:
        swept = sum(sweep(storage, f, written_before_ms=now_ms - heartbeat_expires_ms) for f in dict.fromkeys(folders))
    except Unavailable as error:
        log.warning("%s: temporary files of dead writers stay: %s", storage.location.uri, error)
        return 0

    if swept:
        log.info("%s: deleted %s temporary files of dead writers", storage.location.uri, swept)
    return swept


def own_folders(config: TableConfig) -> list[str]:
    """The folders in which a write changes other files than data files and markers.

    Markers are left out because they are deleted with their whole folder.
    """
    layout = config.layout
    own = [HOODIE, layout.folder, layout.history_folder]
    of_metadata = [
        join(METADATA_TABLE, name) for name in (*own, *config.metadata_partitions, *config.metadata_partitions_inflight)
    ]
    return [*own, HEARTBEATS, join(HOODIE, ".index_defs"), METADATA_TABLE, *of_metadata]
