"""Which log blocks of the metadata table count, by their instants."""

import re
from collections.abc import Callable
from typing import Final

from pyhudi.metadata.store.table import MetadataTable
from pyhudi.timeline.active import Timeline
from pyhudi.versions import MetadataInstants

_OF_ITS_OWN: Final = re.compile(r"0{14}\d*|\d{17}(?:00[1-6]|0[1-9]\d|[1-9]\d\d)")
"""Instants of deltacommits that table versions up to 6 make without an action of the data table: the initial ones, and
those whose last digits say what they are for. Example: 010 at the end.
"""


def block_filter(table: MetadataTable, data_timeline: Timeline) -> Callable[[str], bool]:
    """Whether a block of an instant counts: its deltacommit is complete, and so is the data table's action, if any.

    Up to version 6 the data table may not know the action. Then the deltacommit counts in two cases only: its instant
    says that it never had an action, or it is so old that the action is archived.

    A savepoint has the time of the commit that it keeps, and writes nothing here. While it is pending, the commit
    counts.

    Spec: format/metadata-table.md section 10.
    """
    pending = {i.requested for i in data_timeline.pending if i.action != "savepoint"}
    completed = {i.requested for i in data_timeline if i.is_completed}
    stands_alone = table.config.version.metadata_instants is MetadataInstants.ISSUED
    start = data_timeline.start

    def counts(instant: str) -> bool:
        if instant in pending or not table.timeline.is_committed(instant):
            return False
        is_archived = start is not None and instant < start
        return stands_alone or instant in completed or is_archived or _OF_ITS_OWN.fullmatch(instant) is not None

    return counts
