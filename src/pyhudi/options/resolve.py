"""Reads options from the three sources that state them, and checks them against the table and this release."""

import logging
import threading
from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from pyhudi.by_content import ByContent
from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.entries import DELETE_PAYLOAD, Entry, Kind
from pyhudi.options.names import canonical_name, check_known, is_of_others
from pyhudi.options.registered import OwnKind, is_registered
from pyhudi.options.table_facts import Fact, FactValue, TableFacts, parse_fact, short_class_name, show_fact
from pyhudi.options.told_names import nearest_name
from pyhudi.options.verdicts import fact_names, find_entry

__all__ = ["check_known", "check_table_facts", "find_fact", "merge_options", "option_texts"]

T = TypeVar("T")

COMMIT_METADATA_PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"
COMMIT_METADATA_PREFIX_DEFAULT = "_"
PAYLOAD_CLASS = "hoodie.datasource.write.payload.class"
OPERATION = "hoodie.datasource.write.operation"
PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
_OF_OPERATION = (OPERATION, PARTITIONS_TO_DELETE)

_log = logging.getLogger("pyhudi")
_named: set[str] = set()
_named_lock = threading.Lock()


def merge_options(
    *, write: Mapping[str, object] | None, opened: Mapping[str, object] | None, table: Mapping[str, str]
) -> dict[str, str]:
    """The options of a write under their newest names, as text. If two sources state an option, the nearer one wins.

    Nearest first: `write`, `opened`, `table`. Names in `table`, the table's properties, are not checked, since a later
    release may have added some. Options without effect are logged, each once in a process.

    Raises: Invalid for an unknown name, a value that is no text, number or bool, or two spellings of one name
    with two values in one source; Unsupported for a promise that this release cannot keep.
    """
    sources = (table, _mapping(opened), _mapping(write))
    if not all(isinstance(value, str | int | float) for source in sources for value in source.values()):
        return _merged(write, opened, table)
    stated = tuple(tuple((name, type(value), value) for name, value in source.items()) for source in sources)
    return dict(_known.get(stated, lambda: _merged(write, opened, table)))


_Stated: TypeAlias = tuple[tuple[tuple[str, type[object], object], ...], ...]
_known: ByContent[_Stated, dict[str, str]] = ByContent(2 << 20, lambda stated, _: 300 * sum(map(len, stated)))
"""Options that were merged before: each call merges those of its handle with the table's."""


def _merged(
    write: Mapping[str, object] | None, opened: Mapping[str, object] | None, table: Mapping[str, str]
) -> dict[str, str]:
    prefix = _metadata_prefix(write, opened, table)
    sources = (_stored(table), *(option_texts(given, metadata_prefix=prefix) for given in (opened, write)))
    merged = {name: text for source in sources for name, text in source.items()}

    for name, text in merged.items():
        entry = find_entry(name)
        if entry.kind not in (Kind.READ, Kind.READ_PROMISE, Kind.PROPERTY):
            check_value(name, text, entry)

    for source in sources[1:]:
        for name, text in source.items():
            if table:
                _hold_against_property(name, text, table)
            if not _is_metadata(name, prefix):
                note_unused(name)

    return merged


def check_table_facts(options: Mapping[str, str], facts: TableFacts) -> None:
    """Check options against the facts of the table.

    Raises: Invalid for an option that contradicts a fact; Unsupported for another table version.
    """
    by_class = facts.legacy_payload != "" and any(
        short_class_name(options.get(name, "")) == facts.legacy_payload for name in fact_names(Fact.MERGE_MODE)
    )
    for name, text in options.items():
        fact = find_entry(name).fact
        if name == PAYLOAD_CLASS and is_delete_payload(text):
            continue  # this class says that all rows of the write are deletes, not how the table merges
        if fact is None or (text.strip() == "" and fact not in (Fact.RECORD_KEY, Fact.PARTITION_BY, Fact.ORDERING)):
            continue
        is_custom = by_class and text.strip().upper() == "CUSTOM"
        if fact is Fact.MERGE_MODE and (is_custom or short_class_name(text) == facts.payload):
            continue  # version 9 states by other properties what this class does

        asked, stored = parse_fact(fact, name, text), facts.get(fact)
        if asked == stored and not _is_other_class(fact, text, facts):
            continue

        if fact is Fact.VERSION:
            raise Unsupported(
                f"option '{name}'='{text}': table '{facts.name}' has version {stored}, and a write does not "
                f"change it; leave the option out, or set it to {stored}; to go to a later version, upgrade the table, "
                "or write with hoodie.write.auto.upgrade=true"
            )
        raise Invalid(
            f"option '{name}'='{text}': table '{facts.name}' has '{show_fact(stored)}' as its "
            f"{fact.value.removeprefix('is_').removeprefix('has_').replace('_', ' ')}; leave the "
            "option out, or make another table"
        )


def _is_other_class(fact: Fact, text: str, facts: TableFacts) -> bool:
    """Whether an option names a registered class where the table has another one. Kinds do not tell them apart."""
    match fact:
        case Fact.MERGE_MODE:
            return is_registered(OwnKind.PAYLOAD_CLASS, text.strip()) and text.strip() != facts.payload
        case Fact.KEY_GENERATOR:
            return is_registered(OwnKind.KEY_GENERATOR, text.strip()) and text.strip() != facts.key_generator_class
        case _:
            return False


def find_fact(options: Mapping[str, str], fact: Fact) -> FactValue | None:
    """The value that options state for a fact, under any of its spellings. None if they state none.

    For creating a table. Raises: Invalid if two spellings contradict each other.
    """
    found: dict[str, FactValue] = {}
    for name in fact_names(fact):
        if name == PAYLOAD_CLASS and is_delete_payload(options.get(name, "")):
            continue
        if options.get(name, "").strip():
            found[name] = parse_fact(fact, name, options[name])

    for name, value in found.items():
        first = next(iter(found))
        if value != found[first]:
            raise Invalid(
                f"option '{name}'='{options[name]}': contradicts option '{first}'='{options[first]}'; "
                "expected one value"
            )

    return next(iter(found.values()), None)


def is_delete_payload(text: str) -> bool:
    """Whether a payload class makes every row of the write a delete."""
    return short_class_name(text) == DELETE_PAYLOAD


def refuse_other_operation(options: Mapping[str, object] | None, operation: str) -> None:
    """Refuse options of a call that name another operation than the call carries out. `operation`: such as `upsert`.

    Options of a handle and a table's properties have no say: they count for calls of every operation.
    Raises: Invalid.
    """
    given = options if isinstance(options, Mapping) else {}  # anything else is refused where options are merged
    asked, named = (text.strip() if isinstance(text := given.get(name), str) else "" for name in _OF_OPERATION)
    if asked and asked.lower() != operation:
        raise Invalid(
            f"option '{OPERATION}'='{asked}': this call is of the operation '{operation}'; leave the option out, or "
            "make the call of the other operation"
        )
    if named:
        raise Invalid(
            f"option '{PARTITIONS_TO_DELETE}'='{named}': HudiTable.delete_partitions takes the partitions as its "
            "argument; leave the option out"
        )


def without_operation(options: Mapping[str, T]) -> dict[str, T]:
    """The options without those that choose a write's operation, for a caller that has chosen it."""
    return {name: value for name, value in options.items() if name not in _OF_OPERATION}


def option_texts(given: Mapping[str, object] | None, *, metadata_prefix: str | None = None) -> dict[str, str]:
    """The options of one source under their newest names, as text.

    Names that begin with `metadata_prefix`, or with the prefix that the options themselves state, are entries for the
    commit's metadata, and may be anything.
    Raises: Invalid, as `merge_options` says.
    """
    given = _mapping(given)
    own = _metadata_prefix(given) if metadata_prefix is None or COMMIT_METADATA_PREFIX in given else ""
    texts: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise Invalid(f"option {name!r}: expected a name as text, found {type(name).__name__}")

        text = _text(name, value)
        if not _is_metadata(name, own) and not _is_metadata(name, metadata_prefix or ""):
            check_known(name)

        newest = canonical_name(name)
        if texts.get(newest, text) != text:
            raise Invalid(
                f"option '{name}'='{text}': contradicts option '{spelled[newest]}'='{texts[newest]}', which "
                "is another spelling of it; keep one"
            )
        texts[newest], spelled[newest] = text, name
    return texts


def _mapping(given: Mapping[str, object] | None) -> Mapping[str, object]:
    """The options of one source. Raises: Invalid for what are none."""
    if given is not None and not isinstance(given, Mapping):
        raise Invalid(f"options {given!r}: expected a mapping of names to values, found {type(given).__name__}")
    return {} if given is None else given


def check_value(name: str, text: str, entry: Entry) -> None:
    """Refuse a value that an option's entry does not accept.

    Raises: Unsupported for a promise that cannot be kept; Invalid for a value that is unknown.
    """
    if entry.accepts is None or text.strip() == "":
        return
    if entry.own is not None and is_registered(entry.own, text.strip()):
        return

    accepted = {value.lower() for value in entry.accepts}
    asked = [short_class_name(value).lower() for value in text.split(",")]
    if all(value in accepted for value in asked):
        return

    # A value that is not even known is a mistake of the caller.
    if entry.knows or entry.kind is Kind.SETTING:
        known = [*(value for value in entry.accepts if value), *entry.knows]
        for value in asked:
            if value not in {k.lower() for k in known}:
                near = nearest_name(value, known)
                hint = f"; the nearest is {near}" if near else ""
                raise Invalid(f"option '{name}'='{text}': expected one of {', '.join(known)}{hint}")

    values = [value for value in entry.accepts if value]
    possible = f"expected {' or '.join(values)}" if values else "expected it to be left out"
    raise Unsupported(f"option '{name}'='{text}': {possible}; {entry.note or 'more comes with a later release'}")


def _hold_against_property(name: str, text: str, table: Mapping[str, str]) -> None:
    """Raises: Invalid for an option that would change a property which only the table itself may set."""
    entry, stored = find_entry(name), table.get(name, "")
    if entry.kind is Kind.PROPERTY and text.strip() and text != stored:
        has = f"has '{stored[:80]}'" if stored else "has none"
        raise Invalid(f"option '{name}'='{text[:80]}': the table {has}; {entry.note}; leave the option out")


def note_unused(name: str) -> None:
    """Log an option without effect, once in a process."""
    entry = find_entry(name)
    if entry.kind is Kind.HARMLESS:
        _log_once(name, entry.note)


def without_others(options: Mapping[str, object]) -> dict[str, object]:
    """The options of a DataFrame without those that are not Hudi's. Each of these is logged, once in a process."""
    prefix = _metadata_prefix(options)
    named = [name for name in options if isinstance(name, str) and not _is_metadata(name, prefix)]
    others = [name for name in named if is_of_others(name)]
    for name in others:
        _log_once(name, "it is no option of Hudi")
    return {name: value for name, value in options.items() if name not in others}


def _log_once(name: str, reason: str) -> None:
    with _named_lock:
        is_new = name not in _named
        _named.add(name)
    if is_new:
        _log.info("option '%s' has no effect here: %s", name, reason)


def _stored(table: Mapping[str, str]) -> dict[str, str]:
    """A table's properties under their newest names. If the table has two spellings, the newest name's value counts."""
    renamed = {canonical_name(name): text for name, text in table.items() if canonical_name(name) != name}
    return {**renamed, **{name: text for name, text in table.items() if canonical_name(name) == name}}


def _metadata_prefix(*sources: Mapping[str, object] | None) -> str:
    for source in sources:
        if source is not None and COMMIT_METADATA_PREFIX in source:
            return str(source[COMMIT_METADATA_PREFIX])
    return COMMIT_METADATA_PREFIX_DEFAULT


def _is_metadata(name: str, prefix: str) -> bool:
    return prefix != "" and name.startswith(prefix)


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise Invalid(f"option '{name}'={value!r}: expected text, a number or a bool, found {type(value).__name__}")
