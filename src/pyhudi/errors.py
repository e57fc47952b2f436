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

import re

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
    "hide_secrets",
    "is_secret",
    "shown_cause",
]


_SECRET = r"(?:passw|secret|token|credential|(?:api|access|account)[._-]?key|\bsas\b|_sas_|sas_)"

_HIDDEN = (
    # user and password of a URL; an Azure container stands in the same part of a URL, and is shown
    (
        re.compile(
            r"(\b(?!(?:abfss?|wasbs?|az|azure)://[^:/@\s'\"]*@)[a-z][a-z0-9+.-]*://)[^/\s'\"]*@", re.IGNORECASE
        ),
        r"\1***@",
    ),
    # the query of a URL: signatures and tokens
    (re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"?]*)\?[^\s'\"]*[^\s'\":;,)]"), r"\1?***"),
    # the value of an option whose name says that it is secret, as messages show options
    (re.compile(rf"('[^']*{_SECRET}[^']*'=)'[^']*'", re.IGNORECASE), r"\1'***'"),
)  # fmt: skip


def is_secret(name: str) -> bool:
    """Whether the name of an option says that its value is secret."""
    return re.search(_SECRET, name, re.IGNORECASE) is not None


def shown_cause(error: BaseException) -> BaseException | None:
    """The error of a library, to be the cause of ours; None if its text shows a secret that our errors hide."""
    return error if hide_secrets(str(error)) == str(error) else None


def hide_secrets(text: str) -> str:
    """The text without users, passwords and queries of URLs, and without the values of options that are secret."""
    if "://" not in text and "'='" not in text:
        return text

    for pattern, shown in _HIDDEN:
        text = pattern.sub(shown, text)
    return text


def error_text(error: BaseException) -> str:
    """The kind and the text of an error of a caller's own code, whose text may fail, too. Raises nothing."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of any kind
        return object.__repr__(error)  # asks nothing of the class's own code


class HudiError(Exception):
    """Any error that pyhudi raises on purpose. Its text shows no secrets of URLs and options."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(hide_secrets(one) if isinstance(one, str) else one for one in args))


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
