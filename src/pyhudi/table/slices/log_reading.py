"""What reading logs needs besides their files: values that are sent to tasks, without the decoders.

Importing this module must not import numba: a plan names it, and most tasks of a plan read no log.
"""

from dataclasses import dataclass, replace

from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.merge.rules import MergeRules
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten
from pyhudi.table.slices.evolved import Evolution
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.history import NoHistory

LOG_SIZE_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class LogReading:
    """What reading logs needs besides their files. Picklable.

    `timeline`: tells whose blocks a reader may see. It carries no history: what is archived is committed.
    `keys`: how to compute record keys, if the table does not store them (`hoodie.populate.meta.fields=false`).
    `as_written`: how blocks and base files differ from the columns of today.
    `log_size_bytes_max`: how many bytes of a slice's log may be held at once.
    """

    rules: MergeRules
    timeline: Timeline
    keys: KeySpec | None = None
    as_written: AsWritten = TODAY
    log_size_bytes_max: int = LOG_SIZE_BYTES_MAX

    @classmethod
    def of(
        cls, rules: MergeRules, timeline: Timeline, keys: KeySpec | None, as_written: AsWritten = TODAY
    ) -> "LogReading":
        return cls(rules, replace(timeline, history=NoHistory()), keys, as_written)

    def with_evolution(self, evolution: Evolution | None) -> "LogReading":
        """The same, of columns that had these names."""
        return replace(self, as_written=replace(self.as_written, evolution=evolution))
