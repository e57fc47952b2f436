"""The names of options: which names Apache Hudi knows, and the one spelling that is used here for each.

The list is package data, `names.txt`: the names that Apache Hudi 0.15.0, 1.0.2 and 1.2.0 define, one a line, sorted. A
name that ends in `*` stands for all names that begin so. Last come pyhudi's own names, which begin with `pyhudi.`.
"""

import difflib
import re
from functools import cache
from importlib import resources
from itertools import zip_longest

from pyhudi.errors import Invalid
from pyhudi.options.told_names import nearest_name

ALIASES = {
    "hoodie.avro.schema.externalTransformation": "hoodie.avro.schema.external.transformation",
    "hoodie.bootstrap.keygen.class": "hoodie.datasource.write.keygenerator.class",
    "hoodie.bootstrap.keygen.type": "hoodie.datasource.write.keygenerator.type",
    "hoodie.clean.allow.multiple": "hoodie.clean.multiple.enabled",
    "hoodie.clean.async": "hoodie.clean.async.enabled",
    "hoodie.clean.max.commits": "hoodie.clean.trigger.max.commits",
    "hoodie.cleaner.commits.retained": "hoodie.clean.commits.retained",
    "hoodie.cleaner.delete.bootstrap.base.file": "hoodie.clean.delete.bootstrap.base.file",
    "hoodie.cleaner.fileversions.retained": "hoodie.clean.fileversions.retained",
    "hoodie.cleaner.hours.retained": "hoodie.clean.hours.retained",
    "hoodie.cleaner.incremental.mode": "hoodie.clean.incremental.enabled",
    "hoodie.cleaner.parallelism": "hoodie.clean.parallelism",
    "hoodie.cleaner.partition.filter.regex": "hoodie.clean.partition.filter.regex",
    "hoodie.cleaner.partition.filter.selected": "hoodie.clean.partition.filter.selected",
    "hoodie.cleaner.policy": "hoodie.clean.policy",
    "hoodie.cleaner.policy.failed.writes": "hoodie.clean.failed.writes.policy",
    "hoodie.datasource.clustering.async.enable": "hoodie.clustering.async.enabled",
    "hoodie.datasource.clustering.inline.enable": "hoodie.clustering.inline",
    "hoodie.datasource.view.type": "hoodie.datasource.query.type",
    "hoodie.datasource.write.record.merger.impls": "hoodie.write.record.merge.custom.implementation.classes",
    "hoodie.datasource.write.storage.type": "hoodie.datasource.write.table.type",
    "hoodie.deltastreamer.keygen.datetime.parser.class": "hoodie.keygen.datetime.parser.class",
    "hoodie.deltastreamer.source.kafka.value.deserializer.class": (
        "hoodie.streamer.source.kafka.value.deserializer.class"
    ),
    "hoodie.metadata.partitioned.record.index.max.filegroup.count": (
        "hoodie.metadata.record.level.index.max.filegroup.count"
    ),
    "hoodie.metadata.partitioned.record.index.min.filegroup.count": (
        "hoodie.metadata.record.level.index.min.filegroup.count"
    ),
    "hoodie.metadata.record.index.enable": "hoodie.metadata.global.record.level.index.enable",
    "hoodie.metadata.record.index.max.filegroup.count": (
        "hoodie.metadata.global.record.level.index.max.filegroup.count"
    ),
    "hoodie.metadata.record.index.min.filegroup.count": (
        "hoodie.metadata.global.record.level.index.min.filegroup.count"
    ),
    "hoodie.post.commit.failures.ignored": "hoodie.write.can.ignore.post.commit.failures",
    "hoodie.table.ro.file.format": "hoodie.table.base.file.format",
    "hoodie.table.rt.file.format": "hoodie.table.log.file.format",
    "hoodie.write.lock.storage.heartbeat.poll.secs": "hoodie.write.lock.storage.renew.interval.secs",
}
"""Older spellings -> the newest one. Several options that state one fact of a table are in `table_facts`, not here."""

OWN_PREFIX = "pyhudi."
"""How pyhudi's own names begin. They say how this process works, so no table stores them."""

INDEX_CLASS = "hoodie.index.class"
"""An index of the user's own, which this process registered. No table stores it either."""

WRITE_VERSION = "hoodie.write.table.version"
"""The version that a write asks for. Tables used to store it, and refused each write once they had another version."""

_OLD_KEYGEN, _KEYGEN = "hoodie.deltastreamer.keygen.timebased.", "hoodie.keygen.timebased."


def canonical_name(name: str) -> str:
    """The newest spelling of an option's name."""
    if name.startswith(_OLD_KEYGEN):
        return _KEYGEN + name.removeprefix(_OLD_KEYGEN)
    return ALIASES.get(name, name)


def check_known(name: str) -> None:
    """Accept a name that Apache Hudi knows.

    Raises: Invalid for any other name, with the nearest known name.
    """
    if _is_known(name):
        return
    nearest = _meant(name) or nearest_name(name, known_names()[0])
    hint = f"the nearest known name is '{nearest}'" if nearest else "no known name is near it"
    raise Invalid(f"option '{name}': expected a name that Apache Hudi knows, found an unknown one; {hint}")


def is_of_others(name: str) -> bool:
    """Whether an option of a DataFrame is none of ours, nor a misspelled one: Spark hands on whatever a script says,
    such as `className` for other services.
    """
    return not (name.lower().startswith(("hoodie", OWN_PREFIX)) or _is_known(name) or _is_like_known(name))


def is_of_open_group(name: str) -> bool:
    """Whether a name, misspelled or not, is of a group to which others may add names, such as strategies of theirs."""
    _, prefixes = known_names()
    return name.startswith(prefixes) and name not in prefixes


def _is_known(name: str) -> bool:
    return name in known_names()[0] or (is_of_open_group(name) and _meant(name) is None)


def _meant(name: str) -> str | None:
    """The known name of an open-ended group that a name misspells; None for a name of its own, or of no such group.

    Only names of as many words count, each like the other's. Example: `sort.colums` is `sort.columns`, but
    `min.num.groups` is not `max.num.groups`.
    """
    names, prefixes = known_names()
    group = max((prefix for prefix in prefixes if name.startswith(prefix)), key=len, default=None)
    if group is None:
        return None
    known = sorted(one for one in names if one.startswith(group))
    return next((one for one in known if _is_misspelled(name[len(group) :], one[len(group) :])), None)


def _is_misspelled(found: str, known: str) -> bool:
    words, meant = (re.split("[^a-z0-9]+", text.lower()) for text in (found, known))
    if "".join(words) == "".join(meant):
        return True
    pairs = zip_longest(words, meant, fillvalue="")
    return all(one == other or difflib.SequenceMatcher(None, one, other).ratio() >= 0.75 for one, other in pairs)


def _is_like_known(name: str) -> bool:
    """Whether a name is much like a known one, as `table.name` is. Less will do than to tell which one was meant."""
    return bool(difflib.get_close_matches(name, sorted(known_names()[0]), n=1, cutoff=0.6))


@cache
def known_names() -> tuple[frozenset[str], tuple[str, ...]]:
    """All full names, and the beginnings of the open-ended names. Memory: 50 kB, never freed."""
    lines = resources.files("pyhudi.options").joinpath("names.txt").read_text(encoding="utf-8").splitlines()
    names = frozenset(line for line in lines if line and not line.endswith("*"))
    return names, tuple(line[:-1] for line in lines if line.endswith("*"))
