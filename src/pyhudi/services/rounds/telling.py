"""Who is told of a run of services must not end it."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from pyhudi.errors import error_text

T = TypeVar("T")

log = logging.getLogger("pyhudi")


class ErrorsLogged(Generic[T]):
    """A function whose errors are logged and go no further. While call after call fails, the first error is logged.

    `what`: the function's name in the log.
    """

    def __init__(self, call: Callable[[T], object], what: str) -> None:
        self._call, self._what = call, what
        self._fails = False

    def __call__(self, value: T) -> None:
        try:
            self._call(value)
        except Exception as error:  # of any kind, as errors of services
            if not self._fails:
                log.warning("%s failed, and is tried again the next time: %s", self._what, error_text(error))
            self._fails = True
        else:
            self._fails = False
