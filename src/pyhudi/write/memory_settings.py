"""How much of its input a write in this process may hold, and where it puts the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from pyhudi.options.values import OptionValues

MEMORY_MAX: Final = "pyhudi.memory.max.bytes"
SPILL_FOLDER: Final = "pyhudi.memory.spill.folder"

_DEFAULT_BYTES: Final = 1 << 30
_THREAD_BYTES: Final = 256 * 1024 * 1024
_LEAST_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """How much of its input a write holds. Only the caller's options count: a table's properties have no say.

    `max_bytes`: of rows, as Arrow counts them; None: 1 GiB, or 256 MiB a thread if that is more. One half is for rows
    as they come in; rows beyond it go to files. The other half is for the file groups that are written from such files.
    `spill_folder`: where these files go; None: the system's folder for temporary files.
    """

    max_bytes: int | None = None
    spill_folder: str | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a value that cannot be one."""
        is_said = bool(options.get(MEMORY_MAX, "").strip())
        count = OptionValues(options).count(MEMORY_MAX, _DEFAULT_BYTES, least=_LEAST_BYTES)
        return cls(count if is_said else None, options.get(SPILL_FOLDER, "").strip() or None)

    def share_bytes(self, workers: int) -> int:
        """Half of what may be held. `workers`: how many threads write."""
        whole = self.max_bytes if self.max_bytes is not None else max(_DEFAULT_BYTES, _THREAD_BYTES * workers)
        return whole // 2
