"""The call that changes the options which a table stores."""

from collections.abc import Mapping
from dataclasses import replace

from pyhudi.api.access import locked_access
from pyhudi.api.commit_callback import refuse_stored_callback
from pyhudi.api.handle import TableHandle
from pyhudi.api.own_names import load_named
from pyhudi.errors import Invalid
from pyhudi.options.names import canonical_name, check_known, is_of_open_group
from pyhudi.options.resolve import check_table_facts, merge_options, option_texts
from pyhudi.services.stored_defaults import check_defaults
from pyhudi.table.facts.config import table_config
from pyhudi.table.facts.properties_file import recover_table_properties, replace_table_properties
from pyhudi.table.facts.stored_options import changed_options
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.txn.locks.waiting import awaited_hold
from pyhudi.write.settings import WriteSettings


class PropertyCalls:
    """The call about its properties that a table has."""

    _handle: TableHandle

    def set_properties(self, properties: Mapping[str, object]) -> Mapping[str, str]:
        """Change the options that the table stores as the defaults of later writes. Returns its properties.

        `properties`: option -> value, such as `{"hoodie.metadata.index.column.stats.enable": True}`; None takes the
        option away. All are changed at once, or none. Writes that run meanwhile keep the options that they began with.
        An index that is switched on or off is built or dropped by the next write.
        Raises: Invalid for a fact of the table, such as its keys, for an unknown name and for an impossible value;
        Unsupported for what a table of this version cannot have; Conflict while another writer holds the table.
        """
        handle = self._handle
        changes = _changes(properties)
        load_named(handle.options, {name: text for name, text in changes.items() if text is not None})
        _, settings = _checked(handle, changes)

        access = locked_access(handle.access, settings.lock)
        purpose = f"set_properties of table '{handle.name}'"
        with awaited_hold(access.guard, purpose, clock=access.clock, wait_ms=settings.lock_wait_ms) as hold:
            recover_table_properties(access.storage)
            after, _ = _checked(handle, changes)  # another writer may have changed the table's version meanwhile
            if after != access.config().properties:
                hold.confirm()
                replace_table_properties(access.storage, after, epoch_ms=access.clock.now_ms())
        return access.config().properties


def _changes(properties: Mapping[str, object]) -> dict[str, str | None]:
    """The changes by the newest names of options, with texts for values."""
    if not isinstance(properties, Mapping) or not properties:
        raise Invalid(f"set_properties: expected a mapping of names to values, found {properties!r}")
    texts = option_texts({name: value for name, value in properties.items() if value is not None})
    gone = [name for name, value in properties.items() if value is None]
    for name in gone:
        if not isinstance(name, str):
            raise Invalid(f"option {name!r}: expected a name as text, found {type(name).__name__}")
        if not is_of_open_group(name):  # of which a table may hold a misspelled name, from before these were refused
            check_known(name)
        if canonical_name(name) in texts:
            raise Invalid(f"option '{name}': expected one spelling of it, found another one with a value; keep one")
    refuse_stored_callback(texts)
    return {**texts, **dict.fromkeys(map(canonical_name, gone))}


def _checked(handle: TableHandle, changes: Mapping[str, str | None]) -> tuple[Mapping[str, str], WriteSettings]:
    """The table's properties after the changes, and the settings of a write of this handle by them.

    They are checked as for such a write, so that it is not refused. Nothing is written. One get.
    The lock of the settings is the one that writers hold before the changes.
    """
    config, callers = handle.access.config(), handle.callers_options(None)
    after = table_config(changed_options(config, changes), path=handle.access.location.uri)
    merged = merge_options(write=None, opened=handle.options, table=after.properties)
    check_table_facts(merged, after.facts())
    settings = check_defaults(after, merged)

    locked_access(handle.access, LockSettings.from_options(callers, after.properties))
    lock = LockSettings.from_options(callers, config.properties)
    return after.properties, replace(settings, lock=lock)
