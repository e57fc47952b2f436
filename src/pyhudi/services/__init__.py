"""Table services: each plans purely, then carries its plan out as an action.

A folder for each; `after_commit.py` says what follows a write, `rounds/` what a service process does. That process as a
call is `pyhudi.services.run`. It belongs to the public surface above this layer, and is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.api.service_calls.process import ServiceReport, run

__all__ = ["ServiceReport", "run"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'pyhudi.services' has no attribute '{name}'")
    value = getattr(import_module("pyhudi.api.service_calls.process"), name)
    globals()[name] = value
    return value
