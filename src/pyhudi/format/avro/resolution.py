"""Decides how rows of one Avro schema are read by another: what to build, what to skip, what to fill in.

Fields of records match by name, then by the reading field's aliases; the records' own names do not matter. A field
that only the reading schema has gets its default, or null if it may be null.

Spec: Apache Avro 1.11, "Schema Resolution"; format/log-format.md section 2.1.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.avro.types import NO_DEFAULT, NULL, AvroType, Field, Record, Scalar, Union
from pyhudi.format.avro.types import Array as AvroArray
from pyhudi.format.avro.types import Map as AvroMap

NULL_ARM: Final = -1
MISSING_ARM: Final = -2

_PROMOTIONS: Final = frozenset(
    (
        ("int", "long"),
        ("int", "float"),
        ("int", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    )
)


@dataclass(frozen=True, slots=True)
class Skip:
    """Stored values that are passed over, because the reading schema does not have them."""

    type: AvroType


@dataclass(frozen=True, slots=True)
class Leaf:
    """Values without values inside. `written`: the type they are stored as; `wanted`: the type they are read as."""

    written: Scalar
    wanted: Scalar


@dataclass(frozen=True, slots=True)
class Repeated:
    """The items of an array, or the values of a map, each stored behind its key."""

    is_map: bool
    items: "Reading"
    wanted: AvroArray | AvroMap


@dataclass(frozen=True, slots=True)
class Member:
    """A field to build. `step`: the index of the step that reads it; None: the field's default fills it."""

    field: Field
    step: int | None


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a record. `names`, `steps`: in stored order; `members`: in the reading schema's order."""

    names: tuple[str, ...]
    steps: tuple["Reading", ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Nullable:
    """Values of a union of one type, with or without null; each stands behind its branch number.

    `null_branch`: the branch number of null, 0 or 1; -1 if the union has no null. `is_required`: the reading schema
    allows no null.
    """

    value: "Reading"
    null_branch: int
    is_required: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A union of several types with values.

    `arms`: for each stored branch the index of the member that it fills, or NULL_ARM, or MISSING_ARM if the reading
    schema has no member for it. `readings`: how each stored branch is read.
    """

    arms: tuple[int, ...]
    readings: tuple["Reading", ...]
    wanted: Union


Reading: TypeAlias = Skip | Leaf | Repeated | Fields | Nullable | Choice


def resolve_record(written: Record, wanted: Record, path: str = "") -> Fields:
    """The plan for reading records stored as `written` by the schema `wanted`.

    Raises: Invalid or Unsupported for a field that cannot be read this way, with its path.
    """
    steps: list[Reading] = [Skip(one.type) for one in written.fields]
    positions = {one.name: index for index, one in enumerate(written.fields)}
    members = []

    for one in wanted.fields:
        inner = f"{path}.{one.name}" if path else one.name
        at = next((positions[name] for name in (one.name, *one.aliases) if name in positions), None)

        if at is None:
            if one.default is NO_DEFAULT and not _may_be_null(one.type):
                raise Invalid(
                    f"field '{inner}': the rows do not have it, and the schema to read them by states no default; "
                    f"state one, or let the field be null"
                )
        elif not isinstance(steps[at], Skip):
            raise Unsupported(f"field '{inner}': the stored field '{written.fields[at].name}' is read twice")
        else:
            steps[at] = resolve(written.fields[at].type, one.type, inner)

        members.append(Member(one, at))

    return Fields(tuple(one.name for one in written.fields), tuple(steps), tuple(members))


def resolve(written: AvroType, wanted: AvroType, path: str) -> Reading:
    """The plan for reading values stored as one type by another. Raises: as `resolve_record`."""
    if isinstance(written, Union):
        return _resolve_union(written, wanted, path)
    if isinstance(wanted, Union):
        if len(wanted.values) != 1:
            raise Unsupported(f"field '{path}': one type read as a union of {len(wanted.branches)}")
        return resolve(written, wanted.values[0], path)

    if isinstance(written, Scalar) and isinstance(wanted, Scalar):
        _check_scalar(written, wanted, path)
        return Leaf(written, wanted)
    if isinstance(written, AvroArray) and isinstance(wanted, AvroArray):
        return Repeated(False, resolve(written.items, wanted.items, f"{path}.element"), wanted)
    if isinstance(written, AvroMap) and isinstance(wanted, AvroMap):
        return Repeated(True, resolve(written.values, wanted.values, f"{path}.value"), wanted)
    if isinstance(written, Record) and isinstance(wanted, Record):
        return resolve_record(written, wanted, path)
    raise _misfit(path, written, wanted)


def _resolve_union(written: Union, wanted: AvroType, path: str) -> Reading:
    # One type, perhaps with null: the reading type needs no union.
    if len(written.values) == 1 and len(written.branches) <= 2:
        inner = wanted
        if isinstance(wanted, Union):
            if len(wanted.values) != 1:
                raise Unsupported(f"field '{path}': one type read as a union of {len(wanted.branches)}")
            inner = wanted.values[0]
        return Nullable(resolve(written.values[0], inner, path), written.null_branch, not _may_be_null(wanted))

    if not isinstance(wanted, Union) or len(wanted.values) < 2 or not written.values:
        raise Unsupported(f"field '{path}': a union of {len(written.branches)} types read as something else")

    arms: list[int] = []
    readings: list[Reading] = []
    for index, branch in enumerate(written.branches):
        member = _member_for(branch, wanted)
        if branch == NULL:
            arms.append(NULL_ARM if NULL in wanted.branches else MISSING_ARM)
        elif member is None:
            arms.append(MISSING_ARM)
        elif member in arms:
            raise Unsupported(f"field '{path}': two types of the stored union are read as one")
        else:
            arms.append(member)

        if arms[-1] >= 0:
            readings.append(resolve(branch, wanted.values[arms[-1]], f"{path}.member{arms[-1]}"))
        else:
            readings.append(Skip(written.branches[index]))

    return Choice(tuple(arms), tuple(readings), wanted)


def _member_for(branch: AvroType, wanted: Union) -> int | None:
    """The index of the union's member with the name or kind of the branch, or None. Types are not promoted here."""
    return next((index for index, value in enumerate(wanted.values) if _identity(value) == _identity(branch)), None)


def _identity(kind: AvroType) -> tuple[str, str]:
    """What tells a union's types apart: the kind and, for a named type, its name without the namespace."""
    match kind:
        case Scalar():
            return kind.kind, kind.name.rpartition(".")[2]
        case Record():
            return "record", kind.name.rpartition(".")[2]
        case _:
            return type(kind).__name__, ""


def _check_scalar(written: Scalar, wanted: Scalar, path: str) -> None:
    if written.kind != wanted.kind and (written.kind, wanted.kind) not in _PROMOTIONS:
        raise _misfit(path, written, wanted)
    if written.kind == "fixed" and written.size != wanted.size:
        raise _misfit(path, written, wanted)
    if "decimal" in (written.logical, wanted.logical):
        number, as_number = (written.precision, written.scale), (wanted.precision, wanted.scale)
        if written.kind != wanted.kind or (written.logical and wanted.logical and number != as_number):
            raise _misfit(path, written, wanted)


def _misfit(path: str, written: AvroType, wanted: AvroType) -> Invalid:
    return Invalid(
        f"field '{path}': stored as {_shown(written)}, which is not read as {_shown(wanted)} by Avro's rules; "
        f"read it as it is stored and cast the column"
    )


def _shown(kind: AvroType) -> str:
    if not isinstance(kind, Scalar):
        return type(kind).__name__.lower()
    if kind.logical == "decimal":
        return f"{kind.kind} of decimal({kind.precision}, {kind.scale})"
    return f"{kind.kind} of {kind.size} bytes" if kind.kind == "fixed" else kind.kind


def _may_be_null(kind: AvroType) -> bool:
    return isinstance(kind, Union) and NULL in kind.branches
