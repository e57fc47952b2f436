"""How rows of one Avro schema are read as another: what to build, what to skip, what to fill in.

Records match by their fields' names (then by the reading field's aliases), whatever the records are
called. A field that only the reading schema has becomes its default, or null where it may be null.

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
    """Values that nobody asked for."""

    type: AvroType


@dataclass(frozen=True, slots=True)
class Leaf:
    """Values without values inside: `written` as they are stored, `wanted` as they are read."""

    written: Scalar
    wanted: Scalar


@dataclass(frozen=True, slots=True)
class Repeated:
    """The items of an array or, behind their keys, the values of a map."""

    is_map: bool
    items: "Reading"
    wanted: AvroArray | AvroMap


@dataclass(frozen=True, slots=True)
class Member:
    """A field to build: the step that reads it, or None for one to fill with the field's default."""

    field: Field
    step: int | None


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a record: `steps` as they are stored, `members` as they are read."""

    names: tuple[str, ...]
    steps: tuple["Reading", ...]
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Nullable:
    """Values behind the number of a union's branch. `null_branch`: 0 or 1, or -1 if there is one branch alone.

    `is_required`: the reading schema allows no null.
    """

    value: "Reading"
    null_branch: int
    is_required: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A union of several types with values. `arms`: for each stored branch the index of the member
    it fills, or one of NULL_ARM and MISSING_ARM; `readings`: how each stored branch is read.
    """

    arms: tuple[int, ...]
    readings: tuple["Reading", ...]
    wanted: Union


Reading: TypeAlias = Skip | Leaf | Repeated | Fields | Nullable | Choice


def resolve_record(written: Record, wanted: Record, path: str = "") -> Fields:
    """How a record is read.

    Raises: Invalid or Unsupported for a field that cannot be read so, with its path.
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
    """How values of one type are read as another."""
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
    """The member of a union that takes values of a type: of its very name or kind, nothing promoted."""
    return next((index for index, value in enumerate(wanted.values) if _identity(value) == _identity(branch)), None)


def _identity(kind: AvroType) -> tuple[str, str]:
    """What tells the types of a union apart: a named type's name without its namespace, or the kind."""
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
