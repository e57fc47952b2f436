"""Changes of a table's columns, as values, and what they make of a schema. A column keeps its number whatever changes.

A column is named by its path: `fare`, or `home.city` for a field of a struct, `tags.element.name` within a list,
`prices.value.amount` within the values of a map. Spec: format/layout.md section 8.1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.avro.types import DECIMAL_DIGITS_MAX
from pyhudi.format.schema.conversion import META_FIELDS, avro_field, canonical_arrow, refuse_names_alike
from pyhudi.format.schema.history import KEY, MAP, RECORD, NumberedColumn, NumberedSchema
from pyhudi.format.schema.numbering import decimal_digits, new_column

_WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double", "string"),
    "long": ("float", "double", "string"),
    "float": ("double", "string"),
    "double": ("string",),
    "date": ("string",),
}
"""What a type may become, whatever its values are. Apache Hudi converts these alike from 0.15.0 to 1.2.0."""

_AS_TEXT_SCALE_MAX: Final = 6
"""The most digits behind the point of decimals that may become text: of more, small ones have several spellings."""

_MAY_FIT: Final[Mapping[str, tuple[str, ...]]] = {
    "float": ("decimal",),
    "double": ("decimal",),
    "string": ("decimal", "date"),
}
"""What a type may become where each stored value fits. Apache Hudi takes these without a look at the values."""

_WHOLE_DIGITS: Final = {"int": 10, "long": 19}
"""The most digits of whole numbers, which may become decimals with as many before the point."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column goes: right behind or before another column of the same struct, or to its beginning or end.

    All empty: to the end.
    """

    after: str | None = None
    before: str | None = None
    is_first: bool = False

    def __post_init__(self) -> None:
        if (self.after is not None) + (self.before is not None) + self.is_first > 1:
            raise Invalid("a column's place: expected one of after, before and first, found several")


@dataclass(frozen=True, slots=True)
class Add:
    path: str
    type: pa.DataType
    place: Place = Place()
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """`name`: the new name, without a path."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Drop:
    path: str


@dataclass(frozen=True, slots=True)
class Move:
    path: str
    place: Place


@dataclass(frozen=True, slots=True)
class ChangeType:
    path: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class MakeNullable:
    path: str


@dataclass(frozen=True, slots=True)
class Comment:
    """`doc`: None takes the comment away."""

    path: str
    doc: str | None


Alteration: TypeAlias = Add | Rename | Drop | Move | ChangeType | MakeNullable | Comment

Siblings: TypeAlias = tuple[NumberedColumn, ...]


def altered(schema: NumberedSchema, change: Alteration) -> NumberedSchema:
    """The schema after a change. `since` stays: the caller knows the instant.

    Raises: Invalid for a column that is not there, or is there already, and for a change that stored values do not
    follow; Unsupported for a type that has no place in a history.
    """
    *inside, name = change.path.split(".")
    if not inside and name in META_FIELDS:
        raise Invalid(f"column '{name}': is a meta field, which Apache Hudi keeps itself; it is not altered")

    match change:
        case Add():
            return _with_new(schema, inside, name, change)
        case Rename():
            return _within(schema, inside, lambda siblings: _renamed(siblings, change))
        case Drop():
            return _within(schema, inside, lambda siblings: _dropped(siblings, change))
        case Move():
            return _within(schema, inside, lambda siblings: _moved(siblings, name, change))
        case ChangeType():
            _refuse_map_key(schema, inside, name)
            return _within(schema, inside, lambda siblings: _retyped(siblings, change), reaches_parts=True)
        case MakeNullable():
            return _within(
                schema, inside, lambda siblings: _put(siblings, change.path, is_optional=True), reaches_parts=True
            )
        case Comment():
            return _within(schema, inside, lambda siblings: _put(siblings, change.path, doc=change.doc))
    assert_never(change)


def _refuse_map_key(schema: NumberedSchema, inside: list[str], name: str) -> None:
    around, parts = "", schema.columns
    for step in inside:
        found = next((one for one in parts if one.name == step), None)
        around, parts = ("", ()) if found is None else (found.kind, found.parts)
    if around == MAP and name == KEY:
        raise Invalid(f"column '{'.'.join([*inside, name])}': the keys of a map are texts, whose type stays")


def _with_new(schema: NumberedSchema, inside: list[str], name: str, change: Add) -> NumberedSchema:
    (field,) = canonical_arrow(pa.schema([pa.field(name, change.type)]))
    avro = avro_field(field, "added", name if not inside else change.path)
    assert isinstance(avro, dict)
    made, number_max = new_column({**avro, "doc": change.doc}, change.path, schema.number_max)

    def added(siblings: Siblings) -> Siblings:
        if any(one.name == name for one in siblings):
            raise Invalid(f"column '{change.path}': is there already; choose another name, or change its type")
        _refuse_alike(siblings, name, change.path)
        return _placed(siblings, made, change.place, change.path)

    return replace(_within(schema, inside, added), number_max=number_max)


def _within(
    schema: NumberedSchema,
    inside: list[str],
    change: Callable[[Siblings], Siblings],
    *,
    reaches_parts: bool = False,
) -> NumberedSchema:
    """The schema after a change of the columns in a struct. `inside`: the path of the struct; none: of the table.

    `reaches_parts`: the element of a list and the values of a map may be changed, too.
    """
    return replace(schema, columns=_walk(schema.columns, inside, "", change, reaches_parts))


def _walk(
    siblings: Siblings, inside: list[str], path: str, change: Callable[[Siblings], Siblings], reaches_parts: bool
) -> Siblings:
    if not inside:
        return change(siblings)
    at, full = _find(siblings, inside[0], path), f"{path}{inside[0]}"
    parent = siblings[at]
    if not parent.parts or (len(inside) == 1 and parent.kind != RECORD and not reaches_parts):
        hint = f"; the fields of its parts are '{full}.{parent.parts[-1].name}.…'" if parent.parts else ""
        raise Invalid(f"column '{full}' of type {parent.kind}: expected a struct to change fields in{hint}")
    changed = replace(parent, parts=_walk(parent.parts, inside[1:], f"{full}.", change, reaches_parts))
    return (*siblings[:at], changed, *siblings[at + 1 :])


def _find(siblings: Siblings, name: str, path: str) -> int:
    for at, one in enumerate(siblings):
        if one.name == name:
            return at
    have = ", ".join(one.name for one in siblings if one.name not in META_FIELDS)
    raise Invalid(f"column '{path}{name}': expected one of {have}; found no such column")


def _own(siblings: Siblings, path: str) -> int:
    """The place of the column that a path ends in."""
    around, _, name = path.rpartition(".")
    return _find(siblings, name, f"{around}." if around else "")


def _put(siblings: Siblings, path: str, **values: object) -> Siblings:
    at = _own(siblings, path)
    return (*siblings[:at], replace(siblings[at], **values), *siblings[at + 1 :])  # type: ignore[arg-type]


def _renamed(siblings: Siblings, change: Rename) -> Siblings:
    at = _own(siblings, change.path)
    others = (*siblings[:at], *siblings[at + 1 :])
    if "." in change.name:
        raise Invalid(f"column '{change.path}': the new name '{change.name}': expected a name, without the path")
    if "." not in change.path and change.name.startswith("_hoodie_"):
        raise Invalid(
            f"column '{change.path}': the new name '{change.name}': expected one that does not begin with _hoodie_, as "
            "such columns say what becomes of a row"
        )
    if any(one.name == change.name for one in others):
        raise Invalid(f"column '{change.path}': there is another column '{change.name}'; choose another name")
    _refuse_alike(others, change.name, change.path)
    avro_field(pa.field(change.name, pa.int32()), "", change.name)  # refuses a name that is none
    return _put(siblings, change.path, name=change.name)


def _dropped(siblings: Siblings, change: Drop) -> Siblings:
    at = _own(siblings, change.path)
    left = (*siblings[:at], *siblings[at + 1 :])
    if all(one.name in META_FIELDS for one in left):
        raise Invalid(f"column '{change.path}': is the last one; a table, and a struct, has one column at least")
    return left


def _moved(siblings: Siblings, name: str, change: Move) -> Siblings:
    at = _own(siblings, change.path)
    if name in (change.place.after, change.place.before):
        raise Invalid(f"column '{change.path}': expected another column to move it to, found itself")
    return _placed((*siblings[:at], *siblings[at + 1 :]), siblings[at], change.place, change.path)


def _placed(others: Siblings, column: NumberedColumn, place: Place, path: str) -> Siblings:
    """The columns with one more at its place. Meta fields stay first."""
    around = path.rpartition(".")[0]
    prefix = f"{around}." if around else ""
    if place.is_first:
        at = sum(one.name in META_FIELDS for one in others)
    elif (said := place.after if place.after is not None else place.before) is not None:
        name = said.removeprefix(prefix)
        if name in META_FIELDS:
            raise Invalid(f"column '{path}': cannot stand beside '{name}': meta fields come first, by themselves")
        at = _find(others, name, prefix) + (place.after is not None)
    else:
        at = len(others)
    return (*others[:at], column, *others[at:])


def _retyped(siblings: Siblings, change: ChangeType) -> Siblings:
    stored = siblings[_own(siblings, change.path)]
    (field,) = canonical_arrow(pa.schema([pa.field("c", change.type)]))
    avro = avro_field(field, "changed", change.path)
    assert isinstance(avro, dict)
    wanted, _ = new_column(avro, change.path, 0)
    if stored.parts or wanted.parts:
        raise Invalid(
            f"column '{change.path}' of type {stored.kind}: expected a simple type, which becomes another simple one, "
            f"found {change.type}; the parts of a struct, list or map are changed by their own paths"
        )
    if wanted.kind == stored.kind:
        return siblings
    if not (_widens(stored.kind, wanted.kind) or _may_fit(stored.kind, wanted.kind)):
        fitting = list(_WIDER.get(stored.kind, ()))
        if stored.kind in _WHOLE_DIGITS:
            fitting.append(f"decimals with {_WHOLE_DIGITS[stored.kind]} or more digits before the point")
        elif decimal_digits(stored.kind):
            fitting.append("decimals with no fewer digits before and behind the point")
            fitting += ["string"] if _has_one_spelling(stored.kind) else []
        fitting += [f"{kind} where the stored values fit" for kind in _MAY_FIT.get(stored.kind, ())]
        fit = ", ".join(fitting) or "no other"
        raise Invalid(
            f"column '{change.path}': {stored.kind} cannot become {wanted.kind}: stored values would be lost or read "
            f"otherwise; {stored.kind} may become: {fit}. Add a column of the new type instead"
        )
    return _put(siblings, change.path, kind=wanted.kind)


def _widens(stored: str, wanted: str) -> bool:
    before, after = decimal_digits(stored), decimal_digits(wanted)
    if before is not None and after is not None:
        whole = after[0] - after[1] >= before[0] - before[1]
        return whole and after[1] >= before[1] and after[0] <= DECIMAL_DIGITS_MAX
    if after is not None and stored in _WHOLE_DIGITS:
        return after[0] - after[1] >= _WHOLE_DIGITS[stored] and after[0] <= DECIMAL_DIGITS_MAX
    if before is not None and wanted == "string":
        return _has_one_spelling(stored)
    return wanted in _WIDER.get(stored, ())


def _has_one_spelling(decimal: str) -> bool:
    digits = decimal_digits(decimal)
    return digits is not None and digits[1] <= _AS_TEXT_SCALE_MAX


def _may_fit(stored: str, wanted: str) -> bool:
    return wanted.partition("(")[0] in _MAY_FIT.get(stored, ())


def in_doubt(before: NumberedSchema, after: NumberedSchema) -> list[str]:
    """The columns of `after` in which stored values of `before` have to be looked at: some may not fit the new type.

    Each is named once, without a path, whichever of its parts changes. Example: a text that becomes a date.
    """
    kinds = dict(before.named_kinds().values())
    names = [
        name.partition(".")[0]
        for name, (number, kind) in after.named_kinds().items()
        if number in kinds and kind != kinds[number] and not _widens(kinds[number], kind)
    ]
    return list(dict.fromkeys(names))


def _refuse_alike(others: Siblings, name: str, path: str) -> None:
    around = path.rpartition(".")[0]
    fields = [pa.field(one.name, pa.null()) for one in others if one.name.lower() == name.lower()]
    refuse_names_alike(pa.schema([*fields, pa.field(name, pa.null())]), f"{around}." if around else "")
