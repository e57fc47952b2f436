"""Who listens to the events of this process, and how an event reaches them."""

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

from pyhudi.errors import Invalid, error_text
from pyhudi.metrics.events import Event

Listener: TypeAlias = Callable[[Event], object]

log = logging.getLogger("pyhudi")


@dataclass(eq=False, frozen=True)
class _Subscription:
    """One of perhaps several of a function."""

    listener: Listener


@dataclass
class _Shared:
    """A subscription that several have. `end`: ends it. `users`: who have not ended theirs."""

    end: Callable[[], None]
    users: int = 0


_listeners: tuple[_Subscription, ...] = ()
_shared: dict[Hashable, _Shared] = {}
_changing = threading.RLock()


def subscribe(listener: Listener) -> Callable[[], None]:
    """Call a function with each event of this process from now on. Returns the function that ends this.

    It is called by the thread in which the event happens, which may hold the table: it should return at once. An error
    that it raises is logged, and fails nothing. A function that is subscribed twice is called twice.
    Raises: Invalid for what cannot be called.
    """
    global _listeners
    if not callable(listener):
        raise Invalid(f"subscribe({listener!r}): expected a function of an event, found {type(listener).__name__}")
    subscription = _Subscription(listener)
    with _changing:
        _listeners = (*_listeners, subscription)

    def end() -> None:
        global _listeners
        with _changing:
            _listeners = tuple(one for one in _listeners if one is not subscription)

    return end


def subscribe_once(key: Hashable, listener: Listener) -> Callable[[], None]:
    """As `subscribe`, but of the listeners of one key the first alone is called, until all of them have ended."""
    with _changing:
        shared = _shared.get(key)
        if shared is None:
            shared = _shared[key] = _Shared(subscribe(listener))
        shared.users += 1
    is_over = False

    def end() -> None:
        nonlocal is_over
        with _changing:
            if is_over:
                return
            is_over = True
            shared.users -= 1
            if not shared.users:
                del _shared[key]
                shared.end()

    return end


def is_listening() -> bool:
    """Whether anybody listens. If not, nothing need be measured."""
    return bool(_listeners)


def tell(event: Event) -> None:
    """Hand an event to everybody who listens."""
    for one in _listeners:
        try:
            one.listener(event)
        except Exception as error:  # of any kind: what a listener does with an event must not fail a write
            log.warning("a listener failed at %s: %s", type(event).__name__, error_text(error))
