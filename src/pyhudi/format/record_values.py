"""Frozen dataclasses <-> the plain records of Avro and JSON, by field name and declared type.

A field's name is in camel case in a record: `file_size_in_bytes` is `fileSizeInBytes`. `ALIASES` lists the names that
differ by more. Values are checked against the declared types, so that a text never lands in a number.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias, TypeVar, cast

T = TypeVar("T")

Decode: TypeAlias = Callable[[object], object]

_SCALARS = (str, int, float, bool)

# (class, field) -> names in records. All are written, and a schema takes those it has. The first one found is read.
ALIASES: dict[tuple[str, str], tuple[str, ...]] = {
    ("InstantInfo", "requested"): ("commitTime",),
    ("ActionInstant", "requested"): ("timestamp",),
    ("RollbackPlan", "rollback_requests"): ("RollbackRequests",),
    ("RestorePlan", "savepoint_to_restore"): ("savepointToRestoreTimestamp",),
    ("RestoreMetadata", "rollbacks"): ("hoodieRestoreMetadata",),
    ("CleanerPlan", "last_completed_commit"): ("lastCompletedCommitTimestamp",),
    ("CleanMetadata", "last_completed_commit"): ("lastCompletedCommitTimestamp",),
    ("ServiceStrategy", "class_name"): ("strategyClassName", "compactorClassName"),
}


def record_from(value: object) -> dict[str, object]:
    """The record of a dataclass value: dicts, lists and plain values."""
    assert dataclasses.is_dataclass(value)
    record = _plain(value)
    assert isinstance(record, dict)
    return record


def value_from(kind: type[T], record: object) -> T:
    """The dataclass value of a record.

    Unknown names are ignored. A missing field gets its default; so does a null, if the field must not be None. An entry
    of a map of texts or numbers whose value is null is left out: to Java, which asks for a key's value, both are the
    same. Example: HoodieStreamer states `"deltastreamer.checkpoint.key" : null` for a source without checkpoints.

    Raises: ValueError naming the field whose value does not fit.
    """
    return cast(T, _decode_class(kind)(record))  # type: ignore[arg-type]  # mypy: no class is Hashable


def names_in_record(kind: type, field: str) -> tuple[str, ...]:
    """The names that a field of a dataclass has in records."""
    if (kind.__name__, field) in ALIASES:
        return ALIASES[kind.__name__, field]
    first, *others = field.split("_")
    return (first + "".join(word.capitalize() for word in others),)


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    kind = type(value)
    return {name: _plain(getattr(value, field)) for field, name in _written_names(kind)}  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def _written_names(kind: type) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, name) for f in dataclasses.fields(kind) for name in names_in_record(kind, f.name))


@lru_cache(maxsize=64)
def _decode_class(kind: type) -> Decode:
    hints = typing.get_type_hints(kind)
    members = []
    for member in dataclasses.fields(cast("type[typing.Any]", kind)):
        has_default = member.default is not dataclasses.MISSING or member.default_factory is not dataclasses.MISSING
        skips_null = has_default and not _is_optional(hints[member.name])
        members.append(
            (
                member.name,
                names_in_record(kind, member.name),
                _decoder(hints[member.name]),
                has_default,
                skips_null,
            )
        )

    def decode(record: object) -> object:
        if not isinstance(record, dict):
            raise _misfit("a record", record)

        values: dict[str, object] = {}
        for name, stored_names, decode_member, has_default, skips_null in members:
            stored = next((n for n in stored_names if n in record), None)
            if stored is None:
                if not has_default:
                    raise ValueError(f"field '{stored_names[0]}' of {kind.__name__} is missing")
            elif record[stored] is not None or not skips_null:
                values[name] = _within(stored, decode_member, record[stored])

        return kind(**values)

    return decode


def _decoder(hint: object) -> Decode:
    if _is_optional(hint):
        inner = _decoder(next(arm for arm in typing.get_args(hint) if arm is not types.NoneType))
        return lambda value: None if value is None else inner(value)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return _decode_list(_decoder(arguments[0]))
    if origin is Mapping:
        return _decode_map(_decoder(arguments[1]), skips_null=arguments[1] in _SCALARS)
    assert isinstance(hint, type)
    if dataclasses.is_dataclass(hint):
        return _decode_class(hint)
    return _decode_scalar(hint)


def _is_optional(hint: object) -> bool:
    return types.NoneType in typing.get_args(hint)


def _decode_list(item: Decode) -> Decode:
    def decode(value: object) -> object:
        if not isinstance(value, list):
            raise _misfit("a list", value)
        return tuple(_within(f"[{at}]", item, one) for at, one in enumerate(value))

    return decode


def _decode_map(item: Decode, *, skips_null: bool) -> Decode:
    def decode(value: object) -> object:
        if not isinstance(value, dict):
            raise _misfit("a map", value)
        return {key: _within(key, item, one) for key, one in value.items() if one is not None or not skips_null}

    return decode


def _decode_scalar(kind: type) -> Decode:
    assert kind in _SCALARS

    def decode(value: object) -> object:
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is not kind:
            raise _misfit(f"a value of type {kind.__name__}", value)
        return value

    return decode


def _within(where: str, decode: Decode, value: object) -> object:
    try:
        return decode(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _misfit(expected: str, found: object) -> ValueError:
    return ValueError(f"expected {expected}, found {found!r:.60}")
