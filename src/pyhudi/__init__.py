"""Apache Hudi tables in Python."""

from pyhudi.api import Explanation, HudiTable, Instant, Scan, WriteResult
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
)

__all__ = [
    "Bug",
    "Conflict",
    "CorruptFile",
    "Explanation",
    "HudiError",
    "HudiTable",
    "Instant",
    "Invalid",
    "LockLost",
    "NotFound",
    "OutcomeUnknown",
    "Scan",
    "Unavailable",
    "Unsupported",
    "WriteResult",
]
