"""What can be said of an option, and short ways to say it of several."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pyhudi.model.table_facts import Fact

COMES_LATER = "more comes with a later release"
DELETE_PAYLOAD = "EmptyHoodieRecordPayload"
"""The payload class whose rows are deletes, whatever they hold."""
MERGE_STRATEGIES = ("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d")


class Kind(StrEnum):
    """SETTING: a field of a settings class. FACT: must agree with the table. READ: of reads; writes skip it.

    PROPERTY: a property that the table keeps for itself; a write may repeat it, and no more.
    PROMISE: nothing to do, but only some values can be kept. READ_PROMISE: the same of reads; writes skip it.
    HARMLESS: no meaning here, whatever the value; the note says why.
    """

    SETTING = "SETTING"
    FACT = "FACT"
    READ = "READ"
    PROPERTY = "PROPERTY"
    PROMISE = "PROMISE"
    READ_PROMISE = "READ_PROMISE"
    HARMLESS = "HARMLESS"


class Verdict(StrEnum):
    """What becomes of an option: it is done, it has nothing to do here, or values beyond the default are refused."""

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
    """`accepts`: values that this release keeps, in any case of letters; None: all. An empty text always
    passes, as if the option were left out. `knows`: further values of Apache Hudi's; where there are
    any, and for every SETTING, a value in neither list is a mistake. `note`: why it has no effect, or when more comes.
    """

    kind: Kind
    accepts: tuple[str, ...] | None = None
    knows: tuple[str, ...] = ()
    note: str = ""
    fact: Fact | None = None


def each(names: Iterable[str], entry: Entry) -> dict[str, Entry]:
    return dict.fromkeys(names, entry)


def fact(fact: Fact, *names: str, accepts: tuple[str, ...] | None = None, note: str = "") -> dict[str, Entry]:
    return each(names, Entry(Kind.FACT, accepts, note=note, fact=fact))


def harmless(note: str, *names: str) -> dict[str, Entry]:
    return each(names, Entry(Kind.HARMLESS, note=note))


def off(note: str, *names: str) -> dict[str, Entry]:
    return each(names, Entry(Kind.PROMISE, ("", "false"), note=note))


def empty(note: str, *names: str) -> dict[str, Entry]:
    return each(names, Entry(Kind.PROMISE, ("",), note=note))
