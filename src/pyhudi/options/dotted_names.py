"""Objects that options name by a dotted Python name. Only modules that the process allowed are imported for that.

Options come from many places: a table's properties, a file of settings, a SQL statement. So a name alone imports
nothing. The process says by `allow_dotted_names` which modules its options may name.
"""

from importlib import import_module

from pyhudi.errors import Invalid

_allowed: set[str] = set()


def allow_dotted_names(*modules: str) -> None:
    """Let options of this process name functions and classes of these modules, and of the modules below them.

    Example: after `allow_dotted_names("acme.hudi")` a write may have the option
    `hoodie.datasource.write.keygenerator.class=acme.hudi.keys.by_day`. The options of a table's own properties import
    nothing all the same.
    Raises: Invalid for what is no name of a module.
    """
    for module in modules:
        if not isinstance(module, str) or not all(part.isidentifier() for part in module.split(".")):
            raise Invalid(f"allow_dotted_names({module!r}): expected the dotted name of a Python module")
    _allowed.update(modules)


def is_allowed(name: str) -> bool:
    """Whether this process lets options name this object."""
    module = name.rpartition(".")[0]
    return any(module == allowed or module.startswith(f"{allowed}.") for allowed in _allowed)


def load_dotted(name: str, *, option: str) -> object:
    """The object of an allowed module. Imports the module.

    Raises: Invalid where the module cannot be imported, or has nothing of this name.
    """
    assert is_allowed(name)
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise Invalid(f"option '{option}'='{name}': expected a name that Python can import: {error}") from error
