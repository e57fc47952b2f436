"""What each option means to this release: one entry for each name, and one for each open-ended group of names.

A known name that no table has is a SETTING: the field that it sets declares it. A test finds one that no code reads. To
support more of an option, change its entry: let it accept one more value, or take it out and read it.
"""

from dataclasses import dataclass

from pyhudi.options.entries import COMES_LATER, VERDICTS, Entry, Kind, Verdict
from pyhudi.options.facts import FACTS, PROPERTIES
from pyhudi.options.harmless import OF_OTHERS
from pyhudi.options.names import canonical_name, known_names
from pyhudi.options.promises import PROMISES
from pyhudi.options.reads import READS
from pyhudi.options.refused import REFUSED, REFUSED_READS
from pyhudi.options.settings import SETTINGS
from pyhudi.options.table_facts import Fact
from pyhudi.options.tuning import TUNING


@dataclass(frozen=True, slots=True)
class OptionVerdict:
    """What becomes of an option. `name`: as given. `newest`: its newest spelling.

    `accepts`: the values that pass, if only some do. `reason`: why the option has no effect, or what to do instead.
    """

    name: str
    newest: str
    verdict: Verdict
    accepts: tuple[str, ...]
    reason: str


def find_entry(name: str) -> Entry:
    """The entry for a name: its own entry, or the entry of the longest group of names that the name begins with.

    Only a table's properties can hold a name without either: a later release put it there.
    """
    if name in ENTRIES:
        return ENTRIES[name]
    beginnings = [beginning for beginning in OPEN_ENDED if name.startswith(beginning)]
    return OPEN_ENDED[max(beginnings, key=len)] if beginnings else _FROM_LATER


def fact_names(fact: Fact) -> tuple[str, ...]:
    """The names of the options that state a fact of the table."""
    return tuple(name for name, entry in ENTRIES.items() if entry.fact is fact)


def option_verdicts(containing: str = "", verdict: str | None = None) -> tuple[OptionVerdict, ...]:
    """What becomes of each option of Apache Hudi whose name contains a text, sorted by name.

    `verdict`: "setting" (the option is followed), "harmless" (it has no effect here) or "refused" (only the default
    passes).
    """
    wanted = None if verdict is None else Verdict(verdict)
    names, _ = known_names()
    found = (_verdict(name, find_entry(canonical_name(name))) for name in sorted(names) if containing in name)
    return tuple(each for each in found if wanted is None or each.verdict is wanted)


def _verdict(name: str, entry: Entry) -> OptionVerdict:
    accepts = tuple(value for value in entry.accepts or () if value)
    return OptionVerdict(name, canonical_name(name), VERDICTS[entry.kind], accepts, entry.note)


_FROM_LATER = Entry(Kind.HARMLESS, note="a later release put it into the table's properties")

_TABLES = (FACTS, PROPERTIES, SETTINGS, PROMISES, REFUSED, OF_OTHERS, TUNING, READS, REFUSED_READS)

_TOLD: dict[str, Entry] = {name: entry for table in _TABLES for name, entry in table.items()}
assert len(_TOLD) == sum(map(len, _TABLES)), "an option has one verdict"

ENTRIES: dict[str, Entry] = {
    **_TOLD,
    **{newest: Entry(Kind.SETTING) for name in known_names()[0] if (newest := canonical_name(name)) not in _TOLD},
}

_STREAMER = "it belongs to the streamer, not to a write"

OPEN_ENDED: dict[str, Entry] = {
    "hoodie.aws.": Entry(Kind.HARMLESS, note=OF_OTHERS["hoodie.aws.access.key"].note),
    "hoodie.clustering.plan.strategy.": Entry(
        Kind.HARMLESS, note=OF_OTHERS["hoodie.clustering.plan.strategy.earliest.commit.to.cluster"].note
    ),
    "hoodie.datasource.meta.sync.glue.": Entry(Kind.HARMLESS, note=OF_OTHERS["hoodie.meta.sync.incremental"].note),
    "hoodie.gcp.bigquery.sync.": Entry(Kind.HARMLESS, note=OF_OTHERS["hoodie.meta.sync.incremental"].note),
    "hoodie.deltastreamer.": Entry(Kind.HARMLESS, note=_STREAMER),
    "hoodie.streamer.": Entry(Kind.HARMLESS, note=_STREAMER),
    "hoodie.keygen.timebased.": Entry(Kind.PROMISE, accepts=("",), note="timestamp keys have no option of this name"),
    "hoodie.partition.ttl.strategy.": Entry(Kind.HARMLESS, note="strategies of your own cannot be called"),
    "hoodie.record.merge.property.": Entry(Kind.PROMISE, accepts=("",), note=COMES_LATER),
    "parquet.encryption.": Entry(Kind.PROMISE, accepts=("",), note="files are not encrypted; " + COMES_LATER),
}
