"""Who listens to the events of this process, and how an event reaches them."""

import logging
import threading
from collections.abc import Callable
from typing import TypeAlias

from pyhudi.metrics.events import Event

Listener: TypeAlias = Callable[[Event], object]

log = logging.getLogger("pyhudi")

_listeners: tuple[Listener, ...] = ()
_changing = threading.Lock()


def subscribe(listener: Listener) -> Callable[[], None]:
    """Call a function with each event of this process from now on. Returns the function that ends this.

    It is called by the thread in which the event happens, which may hold the table: it should return at once. An error
    that it raises is logged, and fails nothing.
    """
    global _listeners
    with _changing:
        _listeners = (*_listeners, listener)

    def end() -> None:
        global _listeners
        with _changing:
            _listeners = tuple(one for one in _listeners if one is not listener)

    return end


def is_listening() -> bool:
    """Whether anybody listens. If not, nothing need be measured."""
    return bool(_listeners)


def tell(event: Event) -> None:
    """Hand an event to everybody who listens."""
    for listener in _listeners:
        try:
            listener(event)
        except Exception as error:  # of any kind: what a listener does with an event must not fail a write
            log.warning("a listener failed at %s: %s: %s", type(event).__name__, type(error).__name__, error)
