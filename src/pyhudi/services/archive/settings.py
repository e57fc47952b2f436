"""The settings of archiving: what stays on the active timeline, and how the history is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pyhudi.errors import Invalid
from pyhudi.options.values import OptionValues, count, flag
from pyhudi.services.clean.settings import CleanSettings


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Settings of the archiving service; the defaults are Apache Hudi's.

    `is_automatic`: archiving follows each write when it is due. `commits_max`: archiving is due when the active
    timeline has more completed writes. `commits_min`: how many completed writes archiving leaves, at least.
    `is_beyond_savepoint`: a savepoint holds its own commit only, not every later commit. `waits_for_clean`: what the
    last clean retained stays. `deltacommits_max`: how many delta commits make a compaction of a merge-on-read table
    due; so many stay. `metadata_deltacommits_max`: the same for the metadata table.
    `files_per_merge`: how many files of one layer of the history are merged into one file of the next layer.
    `file_size_max_bytes`: a merge takes no more files once their size exceeds this. `manifests_kept`: how many older
    states of the history stay for readers that began with them. `clean`: what cleaning retains stays on the timeline.
    Spec: format/actions.md section 10; format/timeline.md section 5.
    """

    is_automatic: bool = flag("hoodie.archive.automatic", True)
    commits_max: int = count("hoodie.keep.max.commits", 30, least=2)
    commits_min: int = count("hoodie.keep.min.commits", 20)
    is_beyond_savepoint: bool = flag("hoodie.archive.beyond.savepoint", False)
    waits_for_clean: bool = flag("hoodie.archive.block.on.latest.clean.ectr", False)
    deltacommits_max: int = count("hoodie.compact.inline.max.delta.commits", 5)
    metadata_deltacommits_max: int = count("hoodie.metadata.compact.max.delta.commits", 10)
    files_per_merge: int = count("hoodie.timeline.compaction.batch.size", 10, least=2)
    file_size_max_bytes: int = count("hoodie.timeline.compaction.target.file.max.bytes", 1_048_576_000)
    manifests_kept: int = count("hoodie.timeline.manifest.retained.versions", 3)
    clean: CleanSettings = field(default_factory=CleanSettings)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for. Options that are not about archiving or cleaning are ignored.

        Raises: Invalid for a bad value, naming the option, what was found and what was expected.
        """
        o = OptionValues(options)
        asked = cls(
            **o.fields(cls),
            clean=CleanSettings.from_options(options),
        )
        if asked.commits_min >= asked.commits_max:
            raise Invalid(
                f"hoodie.keep.min.commits={asked.commits_min}: expected less than "
                f"hoodie.keep.max.commits={asked.commits_max}"
            )
        return asked
