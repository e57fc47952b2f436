"""The settings of cleaning: what it keeps, and when it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from enum import StrEnum
from typing import Self

from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.options.values import OptionValues, count, flag

FAILED_WRITES = "hoodie.clean.failed.writes.policy"
TRIGGER_COMMITS = "hoodie.clean.trigger.max.commits"

_HOUR_MS = 3_600_000


class CleanPolicy(StrEnum):
    """What a clean keeps.

    COMMITS: the files that readers of the newest commits need. HOURS: the files that readers of the last hours' commits
    need. VERSIONS: the newest slices of each file group, whatever commits made them.
    """

    COMMITS = "KEEP_LATEST_COMMITS"
    HOURS = "KEEP_LATEST_BY_HOURS"
    VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


class FailedWrites(StrEnum):
    """Who rolls back the writes that died.

    EAGER: whoever begins the next write or service. LAZY: cleans alone. NEVER: nobody, until `rollback` is called.
    """

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """Settings of the cleaning service; the defaults are Apache Hudi's.

    `is_automatic`: a clean that is due follows each write. `trigger_commits`: how many completed commits since the last
    clean make the next clean due. `is_incremental`: look only into partitions that commits have changed since the last
    clean. `commits_per_clean_max`: one clean moves the earliest retained commit forward by so many commits at most;
    None: no limit. `failed_writes`: a write counts as failed once it is surely dead, whatever the policy. So all of
    them are safe with several writers, and the default leaves nothing behind. Spec: format/actions.md section 7.
    """

    is_automatic: bool = flag("hoodie.clean.automatic", True)
    policy: CleanPolicy = CleanPolicy.COMMITS
    commits_retained: int = count("hoodie.clean.commits.retained", 10)
    hours_retained: int = count("hoodie.clean.hours.retained", 24)
    versions_retained: int = count("hoodie.clean.fileversions.retained", 3)
    trigger_commits: int = count(TRIGGER_COMMITS, 1)
    is_incremental: bool = flag("hoodie.clean.incremental.enabled", True)
    commits_per_clean_max: int | None = None
    failed_writes: FailedWrites = FailedWrites.EAGER

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for. Options that are not about cleaning are ignored.

        Raises: Invalid for a bad value, naming the option, what was found and what was expected.
        """
        o, d = OptionValues(options), cls()
        policy = o.choice("hoodie.clean.policy", d.policy.value, tuple(p.value for p in CleanPolicy))
        failed = o.choice(FAILED_WRITES, d.failed_writes.value, tuple(policy.value for policy in FailedWrites))
        per_clean = o.count("hoodie.clean.max.commits.to.clean", 0)
        return cls(
            **o.fields(cls),
            policy=CleanPolicy(policy),
            commits_per_clean_max=per_clean or None,
            failed_writes=FailedWrites(failed),
        )

    def hours_start(self, now_ms: int, zone: tzinfo) -> str:
        """The instant that lies `hours_retained` ago, or 1970's first where there were not so many hours since."""
        return format_instant(max(now_ms - self.hours_retained * _HOUR_MS, 0), zone)

    def of_metadata_table(self) -> Self:
        """The settings for the table's metadata table, which retains a fifth more commits, hours and versions.

        At least 20 commits are retained. Seen: 1.0.2 derives the settings this way (`HoodieMetadataWriteUtils`).
        Spec: format/metadata-table.md section 11.
        """
        return replace(
            self,
            commits_retained=max(20, self.commits_retained * 6 // 5),
            hours_retained=-(-self.hours_retained * 6 // 5),
            versions_retained=-(-self.versions_retained * 6 // 5),
            commits_per_clean_max=None,
        )
