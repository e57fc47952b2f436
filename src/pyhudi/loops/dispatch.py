"""Functions that the interpreter runs over few values, and that numba compiles for many.

Loading numba costs a third of a second and 100 MiB, and more for each loop that is not in the cache. That is much for
two rows, and nothing for a million. So a process begins with the Python function itself. The compiled form is loaded
by the first call with much to do, or by a call after many small ones have added up. Every later call uses it.

    @loop
    def total(numbers: Numbers) -> int: ...

Both forms come from one source and must give the same answers. So the source names its widths (`np.uint64(...)`)
wherever a sum, product or shift could leave them. Otherwise the forms differ: the interpreter keeps the width of an
array's element, and the compiler widens it to 64 bits.
"""

import functools
import hashlib
import threading
import time
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

CALL_MAX = 8192
"""The most array elements that a call may have and still be interpreted. This many take a few milliseconds."""

PROCESS_SECONDS_MAX = 0.25
"""The most processor seconds that a process interprets in all. Loading the compiler costs about as much."""

_building = threading.RLock()


class _Spent:
    """How much processor time this process has spent interpreting. Threads may lose some, which does no harm."""

    seconds = 0.0


def elements(arguments: tuple[Any, ...]) -> int:
    """How many elements the arrays among the arguments have. Arrays inside of tuples count, too."""
    count = 8  # a call without arrays is work as well
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            count += argument.size
        elif isinstance(argument, tuple):
            count += elements(argument)
    return count


class Loop(Generic[R]):
    """A function with its two forms. Compiled loops may call it, from any module."""

    def __init__(
        self,
        function: Callable[..., R],
        work: Callable[..., int] | None,
        *,
        is_inlined: bool,
        plain: Callable[..., R] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._source = cast(FunctionType, function)
        self._work, self._is_inlined = work, is_inlined
        self._interpreted: Callable[..., R] | None = plain
        self._compiled: Callable[..., R] | None = None

    def __call__(self, *arguments: Any) -> R:  # no arguments by name: that would cost 50 ns a call
        compiled = self._compiled
        if compiled is not None:
            return compiled(*arguments)

        count = self._work(*arguments) if self._work else elements(arguments)
        if count > CALL_MAX or _Spent.seconds > PROCESS_SECONDS_MAX:
            return self.compiled(*arguments)

        start = time.thread_time()
        try:
            with np.errstate(over="ignore"):  # numbers wrap, as they do in the compiled form
                return self.interpreted(*arguments)
        finally:
            _Spent.seconds += time.thread_time() - start

    @property
    def interpreted(self) -> Callable[..., R]:
        """The function as Python. The loops that it calls are Python, too."""
        if self._interpreted is None:
            with _building:
                if self._interpreted is None:
                    self._interpreted = self._bound(lambda loop: loop.interpreted)
        return self._interpreted

    @property
    def compiled(self) -> Callable[..., R]:
        """The function as numba compiles it, or reads it from its cache, for the types of the first call."""
        if self._compiled is None:
            with _building:
                if self._compiled is None:
                    from pyhudi.loops.compiling import compiled  # imports numba

                    bound = self._bound(lambda loop: loop.compiled)
                    self._compiled = compiled(bound, self.digest(), is_inlined=self._is_inlined)
        return self._compiled

    def digest(self) -> str:
        """A digest of everything in the compiled form: the code, the constants and the loops that it calls."""
        found: dict[str, str] = {}
        _describe(self, found)
        text = "\n".join(f"{name} {found[name]}" for name in sorted(found))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def named_values(self) -> dict[str, Any]:
        """The names of the module that the function uses, with their values."""
        values = self._source.__globals__
        return {name: values[name] for name in self._source.__code__.co_names if name in values}

    def code(self) -> str:
        """The function's code as text, without the values of the names that it uses."""
        source = self._source
        return f"{_code_text(source.__code__)} {source.__defaults__} {source.__kwdefaults__} {self._is_inlined}"

    def _bound(self, form: Callable[["Loop[Any]"], Callable[..., Any]]) -> Any:
        """A copy of the function. Of each loop that it calls, it sees the given form: Python, or compiled."""
        source = self._source
        named = self.named_values()
        values = {name: form(value) if isinstance(value, Loop) else value for name, value in named.items()}
        values |= {"__builtins__": source.__globals__["__builtins__"], "__name__": source.__module__}
        bound = FunctionType(source.__code__, values, source.__name__, source.__defaults__)
        bound.__kwdefaults__ = source.__kwdefaults__
        bound.__qualname__, bound.__module__ = source.__qualname__, source.__module__
        return bound


def _code_text(code: CodeType) -> str:
    constants = [_code_text(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


def _describe(loop: Loop[Any], found: dict[str, str]) -> None:
    source = loop._source
    name = f"{source.__module__}.{source.__qualname__}"
    if name in found:
        return
    found[name] = loop.code()
    for key, value in loop.named_values().items():
        if isinstance(value, Loop):
            _describe(value, found)
        elif isinstance(value, np.ndarray):
            found[f"{name}:{key}"] = f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        elif not callable(value) and not hasattr(value, "__file__"):
            found[f"{name}:{key}"] = f"{type(value).__name__} {value!r}"


def loop(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function over arrays a loop. The sizes of its arrays tell how much there is to do."""
    return cast(Callable[P, R], Loop(function, None, is_inlined=False))


def loop_over(
    work: Callable[..., int], *, plain: Callable[..., object] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a loop, where `work` tells from the arguments how much there is to do.

    For functions that touch little of a large array. Example: a Bloom filter of megabytes is looked into for one key.
    `plain`: what is run instead while the function is interpreted, where Python's own numbers are faster than NumPy's.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], Loop(function, work, is_inlined=False, plain=plain))

    return decorate


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a part of the loops that call it. It is compiled into each of them."""
    return cast(Callable[P, R], Loop(function, None, is_inlined=True))
