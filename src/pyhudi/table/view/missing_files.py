"""The error for a data file that the table needs and the storage does not have."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.errors import NotFound
from pyhudi.format.names import BaseFileName, LogFileName


@contextmanager
def told_as_missing(path: str) -> Iterator[None]:
    """Turn a storage's "no such file" into what it means for the table. `path`: a base or log file."""
    try:
        yield
    except NotFound as error:
        raise _missing(path, error) from error


def _missing(path: str, error: NotFound) -> NotFound:
    name = path.rpartition("/")[2]
    base, log = BaseFileName.parse(name), LogFileName.parse(name)
    if base is not None:
        origin = f"the instant {base.requested} wrote this base file"
    elif log is not None:
        origin = f"this log is of the instant {log.instant}"
    else:
        return error
    return NotFound(
        f"{error}; {origin}. If a clean took it meanwhile, run the same call again; for a DataFrame of Spark, load the "
        "table again. If somebody deleted it, put it back from a copy, or read or restore the table as of a time "
        "before that instant"
    )
