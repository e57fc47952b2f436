"""Sweeping what changes of dead writers left half done in a storage: temporary files, which no listing shows.

Which of them is dead. A temporary file is written to without pause and then named, so that a living writer's was
written to a moment ago; one that was last written to longer ago than a heartbeat lives is of a writer whom everybody
counts as dead. Whoever sweeps holds the guard and has no task running, so that this is nobody's of ours either; the age
guards those whom no guard keeps apart, such as a task whose driver has died and that does not know it yet. A younger
one stays, for a clean to come.

Where. No folder is listed for this alone, on every write: what a write died in is swept when that write is rolled back
or its heartbeat found, the partitions of a clean when it has run.
"""

import logging
from collections.abc import Iterable

from pyhudi.errors import Unavailable
from pyhudi.format.names import HEARTBEATS, HOODIE, METADATA_TABLE, join
from pyhudi.storage.protocol import Storage, sweep
from pyhudi.table.config import TableConfig

log = logging.getLogger("pyhudi")


def sweep_leftovers(
    storage: Storage, config: TableConfig, partitions: Iterable[str], *, now_ms: int, heartbeat_expires_ms: int
) -> int:
    """Sweep partitions, and the folders of the table's own files and of its metadata table's. Returns how many went.

    A failure is no failure of the write: they stay. Nothing is asked of storages where nothing is left.
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
    """The folders in which a write changes files, but for data files and markers; those go with their folder."""
    layout = config.layout
    own = [HOODIE, layout.folder, layout.history_folder]
    of_metadata = [
        join(METADATA_TABLE, name) for name in (*own, *config.metadata_partitions, *config.metadata_partitions_inflight)
    ]
    return [*own, HEARTBEATS, join(HOODIE, ".index_defs"), METADATA_TABLE, *of_metadata]
