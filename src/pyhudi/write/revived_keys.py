"""Keys that an upsert brought back into a file group, while a compaction was planned there that drops them.

The upsert found the key in the group's base file, although a log had deleted it, and appended the row to the group's
log. That is right as long as the base file holds the key. The base file that the compaction writes does not: the row
would be in a log only, where no later look-up in base files finds it, and the next upsert would make a second row.
`index/compacting.py` knows the compactions that were planned before an upsert looked its keys up. Here are those that
came later.
"""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.names import group_named
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.compacting import as_planned
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.merged_slice import SliceReader
from pyhudi.table.slices.written_keys import KeyReading, WrittenFile, written_keys
from pyhudi.table.view.pending import FileGroup, read_planned_logs
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.conflicts.changes import Change


def find_revived(snapshot: Snapshot, mine: Change, groups: Iterable[FileGroup]) -> FileGroup | None:
    """A file group whose log got a key of this write that its newest, or planned, base file does not hold; None if
    there is none.

    `snapshot`: the table as it is now. `groups`: to whose logs the write appended, and that a compaction took since the
    write looked its keys up. Memory, requests: for each the keys of its base file, of the logs of a pending
    compaction, and of the write's own logs.
    """
    logs = log_reading(snapshot)
    assert logs is not None, "a table with logs"
    planned = read_planned_logs(snapshot.storage, snapshot.timeline)
    reader = SliceReader(snapshot.schema_with_meta, logs)
    own_keys = KeyReading(snapshot.schema_with_meta, logs, snapshot.as_written)

    for partition, file_id in sorted(groups):
        own = written_keys(snapshot.storage, _logs_of(mine, partition, file_id), mine.requested, own_keys)
        for file_slice in snapshot.slices(partition, [file_id]):
            base = replace(file_slice, log_files=())
            taken = as_planned(file_slice, planned) if (partition, file_id) in planned else base
            held = one_array(reader.rows(snapshot.storage, taken, [RECORD_KEY]).column(RECORD_KEY))
            if not pc.all(pc.is_in(own, value_set=held), min_count=0).as_py():
                return partition, file_id
    return None


def _logs_of(mine: Change, partition: str, file_id: str) -> list[WrittenFile]:
    files = mine.files.get(partition, ())
    return [file for file in files if file.is_log and group_named(file.path.rpartition("/")[2]) == file_id]
