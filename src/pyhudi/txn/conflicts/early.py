"""Noticing a conflict before a write does its work: the markers of running writes say which file groups they change.

Two writes that look at the same moment may both find nothing. The verdict when a write completes finds it then.
Spec: format/actions.md section 11.3.
"""

from collections.abc import Collection

from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.instant import WRITE_ACTIONS
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.pending import FileGroup
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.markers import read_markers
from pyhudi.txn.conflicts.verdict import PlanOutdated


def refuse_groups_of_others(storage: Storage, now: Timeline, requested: str, groups: Collection[FileGroup]) -> None:
    """Refuse a write of which another running write has begun to change a file group.

    `requested`: the write's own instant. `groups`: the file groups in its plan. Cost: a list for each running write.
    Raises: PlanOutdated.
    """
    for instant in now.pending:
        if instant.action not in WRITE_ACTIONS or instant.requested == requested:
            continue

        for marker in read_markers(storage, instant.requested) or ():
            partition, _, name = marker.data_path.rpartition("/")
            parsed = BaseFileName.parse(name) or LogFileName.parse(name)
            if parsed is not None and (partition, parsed.file_id) in groups:
                raise PlanOutdated(
                    f"{storage.location.uri}: {instant.action} '{instant.requested}', which is running, changes file "
                    f"group '{parsed.file_id}' in partition '{partition}', which this write ('{requested}') is about "
                    "to change, too; run the write again (hoodie.write.concurrency.early.conflict.detection.enable)"
                )
