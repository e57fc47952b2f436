"""A table that is made by its first write: both, or neither.

Options of the first write say the table's facts. If that write fails, a table that stays would hold its facts, wrong
ones too, against the call that was put right.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.api.access import table_access
from pyhudi.errors import HudiError, OutcomeUnknown
from pyhudi.format.names import HOODIE, PARTITION_METAFILE
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.txn.action.session import TableAccess

log = logging.getLogger("pyhudi")

_PURPOSE = "taking back a table whose first write failed"


@contextmanager
def taken_back_on_failure(path: str) -> Iterator[None]:
    """Remove the new, empty table at `path` if the block fails. A table that others write to, or wrote to, stays."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except Exception:
        try:
            _take_back(table_access(path))
        except HudiError as error:
            log.warning("%s: the table was made, and its first write failed; it stays: %s", path, error)
        raise


def _take_back(access: TableAccess) -> None:
    """Raises: Conflict while somebody holds the table."""
    with access.guard.acquire(_PURPOSE, format_instant(access.clock.now_ms(), access.process_zone())) as hold:
        timeline = access.snapshot().timeline
        files = [file.path for file in access.storage.list("", recursive=True)]
        stored = [path for path in files if not path.startswith(f"{HOODIE}/") and PARTITION_METAFILE not in path]
        if timeline.completed_writes or timeline.pending or stored:
            return
        hold.confirm()
        access.storage.delete_prefix("")
