"""The entry that describes an option, and short ways to write the same entry for several options."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

from pyhudi.options.registered import OwnKind
from pyhudi.options.table_facts import Fact

COMES_LATER = "more comes with a later release"
DELETE_PAYLOAD = "EmptyHoodieRecordPayload"
"""The payload class that makes each row of a write a delete, whatever the row holds."""
MERGE_STRATEGIES = ("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d")


class Kind(StrEnum):
    """SETTING: fills a field of a settings class. FACT: must agree with the table. READ: for queries; writes skip it.

    PROPERTY: a property that only the table may set; a write may repeat it, not change it.
    PROMISE: has no effect, but only some values can be honoured. READ_PROMISE: the same for queries; writes skip it.
    HARMLESS: has no effect, whatever the value. The note says why.
    """

    SETTING = "SETTING"
    FACT = "FACT"
    READ = "READ"
    PROPERTY = "PROPERTY"
    PROMISE = "PROMISE"
    READ_PROMISE = "READ_PROMISE"
    HARMLESS = "HARMLESS"


class Verdict(StrEnum):
    """What becomes of an option: it is followed, it has no effect here, or only its default passes."""

    SETTING = "setting"
    HARMLESS = "harmless"
    REFUSED = "refused"


VERDICTS: dict[Kind, Verdict] = {
    Kind.SETTING: Verdict.SETTING,
    Kind.FACT: Verdict.SETTING,
    Kind.READ: Verdict.SETTING,
    Kind.PROPERTY: Verdict.SETTING,
    Kind.PROMISE: Verdict.REFUSED,
    Kind.READ_PROMISE: Verdict.REFUSED,
    Kind.HARMLESS: Verdict.HARMLESS,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known about an option.

    `accepts`: values that this release supports, in upper or lower case; None: all. An empty text always passes, as if
    the option were left out. `knows`: further values that Apache Hudi knows. If there are any, and for every SETTING, a
    value in neither list is a mistake. `own`: names of this kind pass that the process registered. `note`: why the
    option has no effect, or when more is supported.
    """

    kind: Kind
    _: KW_ONLY
    accepts: tuple[str, ...] | None = None
    knows: tuple[str, ...] = ()
    note: str = ""
    fact: Fact | None = None
    own: OwnKind | None = None


def each(names: Iterable[str], entry: Entry) -> dict[str, Entry]:
    return dict.fromkeys(names, entry)


def fact(
    fact: Fact, *names: str, accepts: tuple[str, ...] | None = None, note: str = "", own: OwnKind | None = None
) -> dict[str, Entry]:
    return each(names, Entry(Kind.FACT, accepts=accepts, note=note, fact=fact, own=own))


def harmless(note: str, *names: str) -> dict[str, Entry]:
    return each(names, Entry(Kind.HARMLESS, note=note))


def off(note: str, *names: str) -> dict[str, Entry]:
    return each(names, Entry(Kind.PROMISE, accepts=("", "false"), note=note))


def empty(note: str, *names: str) -> dict[str, Entry]:
    return each(names, Entry(Kind.PROMISE, accepts=("",), note=note))
