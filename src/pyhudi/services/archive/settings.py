"""The settings of archiving: what stays on the active timeline, and how the history is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pyhudi.errors import Invalid
from pyhudi.options.values import OptionValues
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

    is_automatic: bool = True
    commits_max: int = 30
    commits_min: int = 20
    is_beyond_savepoint: bool = False
    waits_for_clean: bool = False
    deltacommits_max: int = 5
    metadata_deltacommits_max: int = 10
    files_per_merge: int = 10
    file_size_max_bytes: int = 1_048_576_000
    manifests_kept: int = 3
    clean: CleanSettings = field(default_factory=CleanSettings)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for. Options that are not about archiving or cleaning are ignored.

        Raises: Invalid for a bad value, naming the option, what was found and what was expected.
        """
        o, d = OptionValues(options), cls()
        commits_max = o.count("hoodie.keep.max.commits", d.commits_max, least=2)
        commits_min = o.count("hoodie.keep.min.commits", d.commits_min)
        if commits_min >= commits_max:
            raise Invalid(
                f"hoodie.keep.min.commits={commits_min}: expected less than hoodie.keep.max.commits={commits_max}"
            )

        return cls(
            is_automatic=o.flag("hoodie.archive.automatic", d.is_automatic),
            commits_max=commits_max,
            commits_min=commits_min,
            is_beyond_savepoint=o.flag("hoodie.archive.beyond.savepoint", d.is_beyond_savepoint),
            waits_for_clean=o.flag("hoodie.archive.block.on.latest.clean.ectr", d.waits_for_clean),
            deltacommits_max=o.count("hoodie.compact.inline.max.delta.commits", d.deltacommits_max),
            metadata_deltacommits_max=o.count("hoodie.metadata.compact.max.delta.commits", d.metadata_deltacommits_max),
            files_per_merge=o.count("hoodie.timeline.compaction.batch.size", d.files_per_merge, least=2),
            file_size_max_bytes=o.count("hoodie.timeline.compaction.target.file.max.bytes", d.file_size_max_bytes),
            manifests_kept=o.count("hoodie.timeline.manifest.retained.versions", d.manifests_kept),
            clean=CleanSettings.from_options(options),
        )
