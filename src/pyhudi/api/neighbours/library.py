"""Libraries that pyhudi works with and does not bring along."""

import importlib
from types import ModuleType

from pyhudi.errors import Unsupported


def library(name: str, *, asked: str) -> ModuleType:
    """The library, imported now. Raises: Unsupported where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unsupported(f"{asked}: {name} is not installed: pip install {name}") from error
