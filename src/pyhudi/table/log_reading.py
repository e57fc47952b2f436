"""What reading logs takes beside their files: data that travel to tasks, without the decoders.

Importing this module must not import numba: a plan names it, and most tasks of a plan read no log.
"""

from dataclasses import dataclass, replace

from pyhudi.format.keys import KeySpec
from pyhudi.merge.rules import MergeRules
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.history import NoHistory

LOG_SIZE_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class LogReading:
    """What reading logs takes beside the files. Picklable.

    `timeline`: says whose blocks a reader may see; its history stays behind: what is archived is committed.
    `keys`: how rows spell their keys, where the table does not store them (`hoodie.populate.meta.fields=false`).
    `log_size_bytes_max`: how much of a slice's log may be held at once.
    """

    rules: MergeRules
    timeline: Timeline
    keys: KeySpec | None = None
    log_size_bytes_max: int = LOG_SIZE_BYTES_MAX

    @classmethod
    def of(cls, rules: MergeRules, timeline: Timeline, keys: KeySpec | None) -> "LogReading":
        return cls(rules, replace(timeline, history=NoHistory()), keys)
