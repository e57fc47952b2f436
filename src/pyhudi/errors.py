"""Every exception that pyhudi raises on purpose.

    HudiError
    ├── NotFound        no such table, instant, partition, index        -> check the name
    ├── Invalid         the caller's argument, schema or setting        -> change the call
    ├── Unsupported     the table is fine, we cannot do this to it      -> upgrade, or other tool
    ├── Conflict        another writer won                              -> retry from the new snapshot
    │   └── LockLost    our lease ended before the commit               -> same; a longer lease if it recurs
    ├── Unavailable     the store or lock service failed                -> retry the same call
    ├── OutcomeUnknown  the commit may or may not have landed           -> read the timeline, never delete
    ├── CorruptFile     stored bytes break the format                   -> repair; never retried
    └── Bug             an invariant of ours broke                      -> report, with the text

A class exists where a caller would act differently. Texts may change; classes and
attributes are API.
"""

__all__ = [
    "Bug",
    "Conflict",
    "CorruptFile",
    "HudiError",
    "Invalid",
    "LockLost",
    "NotFound",
    "OutcomeUnknown",
    "Unavailable",
    "Unsupported",
]


class HudiError(Exception):
    """Anything that pyhudi raises on purpose."""


class NotFound(HudiError):
    """No such table, instant, partition or index. Check the name."""


class Invalid(HudiError):
    """An argument, a schema or a setting of the caller is wrong. Change the call."""


class Unsupported(HudiError):
    """The table is sound, but this cannot be done to it with this release."""


class Conflict(HudiError):
    """Another writer holds or won the table. Retry from the new snapshot."""


class LockLost(Conflict):
    """The lease on the table ended before the commit did. Retry; ask for a longer lease if it recurs."""


class Unavailable(HudiError):
    """The store or the lock service failed. The same call may succeed later."""


class OutcomeUnknown(HudiError):
    """The commit may or may not have landed. Read the timeline; delete nothing."""


class CorruptFile(HudiError):
    """Stored bytes break the format. Retrying cannot help; the message says which bytes."""

    def __init__(self, path: str, offset: int, *, expected: str, found: str, hint: str = "") -> None:
        self.path, self.offset, self.expected, self.found, self.hint = path, offset, expected, found, hint
        tail = f" {hint}" if hint else ""
        super().__init__(f"{path} at byte {offset:,}: expected {expected}, found {found}.{tail}")

    def __reduce__(self) -> tuple[object, ...]:
        return _corrupt_file, (self.path, self.offset, self.expected, self.found, self.hint)


def _corrupt_file(path: str, offset: int, expected: str, found: str, hint: str) -> CorruptFile:
    return CorruptFile(path, offset, expected=expected, found=found, hint=hint)


class Bug(HudiError):
    """An invariant of pyhudi broke. Please report it with the whole text."""
