"""What each option means to this release: one entry a name, or one for all names that begin alike.

To widen the scope, change an entry: let it accept one more value, or turn it into a SETTING. A known name without
an entry is IGNORED.
"""

from pyhudi.model.option_entries import COMES_LATER, Entry, Kind
from pyhudi.model.option_facts import FACTS
from pyhudi.model.option_promises import PROMISES, UNUSED
from pyhudi.model.option_reads import READS
from pyhudi.model.option_settings import SETTINGS
from pyhudi.model.table_facts import Fact


def find_entry(name: str) -> Entry:
    """The entry of a name: its own, that of its longest beginning, or the one that ignores it."""
    if name in _ENTRIES:
        return _ENTRIES[name]
    prefixes = [prefix for prefix in _PREFIXES if name.startswith(prefix)]
    return _PREFIXES[max(prefixes, key=len)] if prefixes else _NO_ENTRY


def fact_names(fact: Fact) -> tuple[str, ...]:
    """The options that spell a fact of the table."""
    return tuple(name for name, entry in _ENTRIES.items() if entry.fact is fact)


_NO_ENTRY = Entry(Kind.IGNORED, note="nothing in this release depends on it")


_ENTRIES: dict[str, Entry] = {**FACTS, **SETTINGS, **PROMISES, **UNUSED, **READS}

_PREFIXES: dict[str, Entry] = {
    "hoodie.datasource.read.": Entry(Kind.READ),
    "hoodie.file.index.": Entry(Kind.READ),
    "hoodie.archive.": Entry(Kind.IGNORED, note="it tunes jobs and small files that archiving does not have here"),
    "hoodie.record.merge.property.": Entry(Kind.PROMISE, ("",), note=COMES_LATER),
    "parquet.encryption.": Entry(Kind.PROMISE, ("",), note="files are not encrypted; " + COMES_LATER),
    "hoodie.metrics.": Entry(Kind.IGNORED, note="no metrics are reported"),
    "hoodie.write.lock.": Entry(Kind.IGNORED, note="a write holds the table by its own guard, without a lock provider"),
    "hoodie.datasource.hive_sync.": Entry(Kind.IGNORED, note="no catalog is told about commits"),
    "hoodie.meta.sync.": Entry(Kind.IGNORED, note="no catalog is told about commits"),
    "hoodie.embed.timeline.server": Entry(Kind.IGNORED, note="there is no timeline server"),
    "hoodie.filesystem.": Entry(Kind.IGNORED, note="there is no file-system view server"),
    "hoodie.memory.": Entry(Kind.IGNORED, note="memory is bounded by batches, not by fractions of a heap"),
    "hoodie.streamer.": Entry(Kind.IGNORED, note="it belongs to the streamer, not to a write"),
    "hoodie.deltastreamer.": Entry(Kind.IGNORED, note="it belongs to the streamer, not to a write"),
}
