"""The copy of a compaction's plan in `.hoodie/.aux`. Readers of table version 5 take it before the one of the timeline.

Spec: format/versions.md section 2. Seen: 0.13.1 writes it first, and reads it where it is there.
"""

from pyhudi.format.names import HOODIE, join
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.protocol import Storage

_FOLDER = join(HOODIE, ".aux")
_ENDING = ".compaction.requested"


def put_plan_copy(storage: Storage, instant: Instant, content: bytes) -> None:
    """Put the copy of a plan. It must be there before the plan is requested. One put."""
    storage.put(_path(instant.requested), content)


def remove_plan_copies(storage: Storage, *, before: str | None = None) -> None:
    """Remove the copies of plans; with `before` those of compactions that were requested earlier. A list request."""
    names = [(file.path, file.path.rpartition("/")[2]) for file in storage.list(_FOLDER)]
    gone = [path for path, name in names if name.endswith(_ENDING) and (before is None or name < before)]
    if gone:
        storage.delete_many(gone)


def _path(requested: str) -> str:
    return join(_FOLDER, f"{requested}{_ENDING}")
