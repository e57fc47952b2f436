"""Which of the writes that completed meanwhile wrote a key that this write wrote, too.

The files of both say it, on every engine alike. Spec: spec/002, writer step 3.4 (conflicts by record key).
"""

from collections.abc import Iterable

from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.written_keys import KeyReading, WrittenFile, share_a_key, written_keys
from pyhudi.txn.conflicts.changes import Change

ROWS_MAX = 4_000_000
"""Rows in files whose keys are compared, at most. The table is held meanwhile, and planning anew costs as much."""


def find_apart(
    storage: Storage, mine: Change, others: Iterable[Change], reading: KeyReading, *, is_global: bool
) -> frozenset[str]:
    """The requested times of those others that wrote none of the keys that this write wrote.

    Only keys of one partition can be the same, unless the index is global. Memory: the keys of this write's files and
    of one of the others' at a time. Others with more than `ROWS_MAX` rows to look through are not looked at.
    """
    apart = set[str]()
    for other in others:
        common = mine.files.keys() & other.files.keys()
        own = _files(mine, mine.files.keys() if is_global else common)
        theirs = _files(other, other.files.keys() if is_global else common)
        if sum(file.rows for file in (*own, *theirs)) > ROWS_MAX:
            continue
        keys = written_keys(storage, own, mine.requested, reading)
        if not share_a_key(keys, written_keys(storage, theirs, other.requested, reading)):
            apart.add(other.requested)
    return frozenset(apart)


def _files(change: Change, partitions: Iterable[str]) -> list[WrittenFile]:
    return [file for partition in sorted(partitions) for file in change.files[partition]]
