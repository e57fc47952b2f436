"""Errors of a caller's own code that fail when somebody asks for their text, their class's name or their trace."""

from typing import Any


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class _Unnamed(type):
    @property
    def __name__(cls) -> Any:  # type: ignore[override]
        raise ValueError("no name")


class Nameless(Exception, metaclass=_Unnamed):
    pass


class Traceless(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise ValueError("no trace")

    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise ValueError("no cause")


ODD_ERRORS = {"no text": Mute, "no name": Nameless, "no trace": Traceless}
