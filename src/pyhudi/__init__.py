"""Apache Hudi tables in Python.

Names other than the errors are loaded when they are first used, so that `import pyhudi` costs next to nothing.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from pyhudi.errors import (
    Bug,
    Conflict,
    CorruptFile,
    HudiError,
    Invalid,
    LockLost,
    NotFound,
    OutcomeUnknown,
    Unavailable,
    Unsupported,
    hide_secrets,
)

if TYPE_CHECKING:
    from pyhudi.api import (
        ArchiveResult,
        Changes,
        CleanResult,
        CompactionResult,
        ExpiryResult,
        Explanation,
        HudiTable,
        IndexOf,
        Instant,
        KeyGenerator,
        LocationChanges,
        OptionVerdict,
        OwnIndex,
        RecordMerger,
        RescaleResult,
        RestoreResult,
        RollbackResult,
        Savepoint,
        Scan,
        ScanTask,
        TableMetadata,
        When,
        WriteResult,
        allow_dotted_names,
        option_verdicts,
        register_index,
        register_key_generator,
        register_merger,
        register_payload_class,
        scan_dataset,
        scan_polars,
    )

__all__ = [
    "ArchiveResult",
    "Bug",
    "Changes",
    "CleanResult",
    "CompactionResult",
    "Conflict",
    "CorruptFile",
    "ExpiryResult",
    "RescaleResult",
    "Explanation",
    "HudiError",
    "HudiTable",
    "IndexOf",
    "Instant",
    "Invalid",
    "KeyGenerator",
    "LocationChanges",
    "LockLost",
    "NotFound",
    "OptionVerdict",
    "OutcomeUnknown",
    "OwnIndex",
    "RecordMerger",
    "RestoreResult",
    "RollbackResult",
    "Savepoint",
    "Scan",
    "ScanTask",
    "TableMetadata",
    "Unavailable",
    "Unsupported",
    "When",
    "WriteResult",
    "allow_dotted_names",
    "option_verdicts",
    "register_index",
    "register_key_generator",
    "register_merger",
    "register_payload_class",
    "scan_dataset",
    "scan_polars",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'pyhudi' has no attribute '{name}'")
    value = getattr(import_module("pyhudi.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _HidesSecrets(logging.Filter):
    """As errors do: a message of a log names the same files and options."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if (shown := hide_secrets(text)) != text:
            record.msg, record.args = shown, ()
        return True


logging.getLogger("pyhudi").addFilter(_HidesSecrets())
