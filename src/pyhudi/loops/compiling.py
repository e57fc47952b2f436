"""Compiles loops with numba, and keeps the compiled forms in a private folder. Importing this module imports numba.

The name of a cache file has the digest of everything that was compiled into it, so versions of pyhudi may share the
folder. numba itself tells files apart that are of another numba release, another processor or other argument types.
"""

import contextlib
import functools
import logging
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core import caching

from pyhudi.loops.folder import VARIABLE, find_folder

log = logging.getLogger("pyhudi")

_saying = threading.Lock()
_said: set[str] = set()


def compiled(function: FunctionType, digest: str, *, is_inlined: bool) -> Callable[..., Any]:
    """The compiled form of a function. It is compiled at its first call."""
    dispatcher: Any = numba.njit(nogil=True, inline="always" if is_inlined else "never")(function)
    dispatcher._cache = KeptCache(function, digest, _folder())
    return dispatcher


@functools.cache
def _folder() -> Path | None:
    """The folder for this process, or None. It is searched once."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    folder, refused = find_folder(f"numba-{numba.__version__}-{python}-{platform.machine()}")
    for reason in refused:
        log.warning("Compiled loops are not kept there: %s. They go to %s", reason, folder or "no folder")
    return folder


class _Impl(caching.CompileResultCacheImpl):
    """Writes results as numba does, but with our folder and file names instead of numba's search for a folder."""

    def __init__(self, function: FunctionType, folder: Path, digest: str) -> None:
        self._locator, self._lineno = _Locator(folder, digest), function.__code__.co_firstlineno
        self._filename_base = f"{function.__module__}.{function.__name__}-{digest}"


class _Locator(caching._CacheLocator):
    """Tells numba the folder of the results, and the digest of what they were compiled from."""

    def __init__(self, folder: Path, digest: str) -> None:
        self._folder, self._digest = folder, digest

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._digest

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder was made and checked before. Once gone, it must not come back with other rights."""


class KeptCache(caching.FunctionCache):
    """numba's cache of one function. Without a folder, or if its files cannot be used, nothing is kept."""

    def __init__(self, function: FunctionType, digest: str, folder: Path | None) -> None:
        self._py_func, self._name = function, repr(function)
        self._enabled, self._cache_path = folder is not None, str(folder) if folder else None
        if folder is None:
            return
        self._impl = _Impl(function, folder, digest)
        self._cache_file = caching.IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path, filename_base=self._impl.filename_base, source_stamp=digest
        )

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled form that was kept for a signature, or None; then numba compiles."""
        result = None
        if self._enabled:
            try:
                result = super().load_overload(signature, context)  # type: ignore[no-untyped-call]
            except Exception as e:  # a file that was cut short fails in many ways; compiling mends it
                _say_once("A compiled loop in %s cannot be read (%r) and is compiled anew", self._cache_path, e)
                with contextlib.suppress(OSError):
                    self.flush()

        if result is None and self._enabled:
            _say_once("Compiling loops, once for this version: some 10 s in all. Kept in %s", self._cache_path)
        elif result is None:
            _say_once("Compiling loops, some 10 s in each process. Set %s to a folder that keeps them", VARIABLE)
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled form."""
        if not self._enabled:
            return
        try:
            self._save_overload(signature, result)  # type: ignore[no-untyped-call]
        except Exception as e:  # a full or read-only disk, or an index that is broken: the loop itself is compiled
            _say_once("Compiled loops are not kept in %s: %s. Set %s to another folder", self._cache_path, e, VARIABLE)

    def flush(self) -> None:
        """Forget all compiled forms of this function."""
        if self._enabled:
            super().flush()  # type: ignore[no-untyped-call]


def _say_once(message: str, *arguments: object) -> None:
    with _saying:
        if message in _said:
            return
        _said.add(message)
    log.warning(message, *arguments)
