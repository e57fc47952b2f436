"""The steps between two versions, and what they make of a table's properties. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from pyhudi.errors import Invalid, Unsupported
from pyhudi.services.upgrade.eight_to_nine import to_nine
from pyhudi.services.upgrade.eight_to_six import to_six
from pyhudi.services.upgrade.facts import PAYLOAD, Properties, without
from pyhudi.services.upgrade.five_to_six import to_six_from_five
from pyhudi.services.upgrade.nine_to_eight import to_eight_from_nine
from pyhudi.services.upgrade.six_to_eight import to_eight
from pyhudi.services.upgrade.six_to_five import to_five
from pyhudi.services.upgrade.stored_options import unfit_options
from pyhudi.table.facts.bucket_facts import facts_of_table
from pyhudi.table.facts.config import KeyKind, TableConfig
from pyhudi.versions import LAYOUT_VERSION, TABLE_VERSION, VERSIONS, TableVersion


@dataclass(frozen=True, slots=True)
class _Table:
    """A table on its way. `config`: as it was before the first step."""

    config: TableConfig
    first_payload: str


_Step: TypeAlias = Callable[[Properties, _Table], dict[str, str]]

_STEPS: Final[Mapping[tuple[int, int], _Step]] = {
    (5, 6): lambda properties, table: to_six_from_five(properties),
    (6, 7): lambda properties, table: dict(properties),
    (7, 8): lambda properties, table: to_eight(properties, table.config),
    (6, 8): lambda properties, table: to_eight(properties, table.config),
    (8, 9): lambda properties, table: to_nine(properties, table.first_payload),
    (9, 8): lambda properties, table: to_eight_from_nine(properties, table.config.name),
    (8, 6): lambda properties, table: to_six(properties, table.config),
    (8, 7): lambda properties, table: to_six(properties, table.config),
    (7, 6): lambda properties, table: dict(properties),
    (6, 5): lambda properties, table: to_five(properties),
}
"""What each step makes of the properties, by the version before and after it.

Versions 6 and 7 have the same properties. Spec: format/versions.md section 3, "6→7, 7→6".
"""

_NUMBERS: Final = tuple(sorted({number for step in _STEPS for number in step}))


def find_version(number: int | None, *, what: str) -> TableVersion:
    """The version of a number; None: the newest. Raises: Invalid."""
    wanted = _NUMBERS[-1] if number is None else number
    found = VERSIONS.get(wanted) if type(wanted) is int else None
    if found is None or found.number not in _NUMBERS:
        raise Invalid(f"{what} to version {number!r}: expected one of the numbers {', '.join(map(str, _NUMBERS))}")
    return found


def is_later(one: TableVersion, other: TableVersion) -> bool:
    return _NUMBERS.index(one.number) > _NUMBERS.index(other.number)


def versions_between(start: TableVersion, end: TableVersion) -> tuple[int, ...]:
    """The versions from one to another, both included. An experimental one is gone through only if it is an end."""
    low, high = sorted((start.number, end.number))
    passed = [
        number
        for number in _NUMBERS
        if low <= number <= high and (number in (low, high) or not VERSIONS[number].is_experimental)
    ]
    return tuple(passed if low == start.number else reversed(passed))


def changed_properties(config: TableConfig, target: TableVersion) -> dict[str, str]:
    """The properties of a table at another version. Its lists of metadata partitions are left as they are.

    Raises: Invalid or Unsupported for what the other version cannot say, or would read otherwise.
    """
    refuse_other_keys(config, target)
    properties: dict[str, str] = dict(config.properties)
    table = _Table(config, properties.get(PAYLOAD, ""))
    for step in pairwise(versions_between(config.version, target)):
        properties = _STEPS[step](properties, table)
    properties = without(properties, *unfit_options(properties, target))
    return properties | {TABLE_VERSION: str(target), LAYOUT_VERSION: str(target.timeline.number)}


def refuse_other_keys(config: TableConfig, target: TableVersion) -> None:
    """Refuse a table whose stored keys the other version would spell, or place, otherwise. Raises: Unsupported."""
    source, what = config.version, f"table '{config.name}': from version {config.version} to {target}"
    is_complex = config.key_kind is KeyKind.COMPLEX and len(config.record_key) == 1
    if is_complex and source.names_only_key_field != target.names_only_key_field:
        raise Unsupported(
            f"{what}: its complex key generator has the one key column '{config.record_key[0]}', whose keys both "
            "versions spell otherwise: each row would be there twice after its next write. Write it to a new table"
        )
    has_colons = len(config.record_key) > 1
    if (
        has_colons
        and source.has_stable_key_hash != target.has_stable_key_hash
        and facts_of_table(config, config.properties)
    ):
        raise Unsupported(
            f"{what}: its buckets hold keys of several columns, which the versions hash otherwise. Write it to a "
            "new table"
        )
