"""Key generators and indexes that a caller's options name by a dotted Python name: they are loaded and registered."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pyhudi.format.keys.own_generators import register_key_generator
from pyhudi.index.own.protocol import register_index
from pyhudi.options.dotted_names import is_allowed, load_dotted
from pyhudi.options.names import INDEX_CLASS
from pyhudi.options.registered import OwnKind, is_registered


def _register_index(name: str, factory: Any) -> None:
    """A class may say by its attribute `is_global` whether it is a global index, which it is otherwise."""
    register_index(name, factory, is_global=bool(getattr(factory, "is_global", True)))


_LOADED: Final[Mapping[str, tuple[OwnKind, Callable[[str, Any], None]]]] = {
    "hoodie.datasource.write.keygenerator.class": (OwnKind.KEY_GENERATOR, register_key_generator),
    "hoodie.bootstrap.keygen.class": (OwnKind.KEY_GENERATOR, register_key_generator),
    INDEX_CLASS: (OwnKind.INDEX, _register_index),
}


def load_named(*given: Mapping[str, object] | None) -> None:
    """Register what these options name, where `allow_dotted_names` lets them. `given`: never a table's own properties.

    A name that is not allowed is left alone: it may be registered, or is refused later.
    Raises: Invalid for a name that cannot be imported, or is not what the option needs.
    """
    for options in given:
        for option, (kind, register) in _LOADED.items():
            name = options.get(option) if isinstance(options, Mapping) else None
            if isinstance(name, str) and is_allowed(name) and not is_registered(kind, name):
                register(name, load_dotted(name, option=option))
