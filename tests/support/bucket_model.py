"""A merge-on-read table whose rows are placed by bucket, as a dict: a key whose bucket has a file group goes to its
log, stored or not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.format.keys.hashing_metadata import HashingMetadata
from pyhudi.index.bucket import BucketRule, FixedBuckets
from pyhudi.index.consistent_buckets import RingBuckets
from tests.support.log_model import Logged, LogModel
from tests.support.model import Key, Row, Stored

BUCKETS = 2


@dataclass
class BucketModel(LogModel):
    """`live`: partition and number of each bucket that has a file group. `has_rings`: by consistent hashing."""

    has_rings: bool = False
    live: set[tuple[str, int]] = field(default_factory=set)
    _emptied: set[str] = field(default_factory=set)

    def place(self, key: Key) -> tuple[str, int]:
        partition, record_key = key
        rule: BucketRule = FixedBuckets(BUCKETS, ("id",))
        if self.has_rings:
            rule = RingBuckets(HashingMetadata.initial(partition, BUCKETS), ("id",))
        return partition, int(rule.bucket_of(pa.array([record_key]))[0])

    def _is_live(self, key: Key) -> bool:
        return self.place(key) in self.live

    def upsert(self, batch: Iterable[Row]) -> tuple[dict[Key, Row], int, int]:
        settled = self.settle(batch, ordered=self.ordered)
        self._pending = [(key, row, row.ts) for key, row in settled.items()]
        return settled, *self.insert_counts(settled)

    def insert_counts(self, keys: Iterable[Key]) -> tuple[int, int]:
        """Rows that count as inserted and as updated: nobody looks whether a key is in the log."""
        to_logs = [self._is_live(key) for key in keys]
        return len(to_logs) - sum(to_logs), sum(to_logs)

    def insert_new(self, batch: Iterable[Row]) -> tuple[dict[Key, Row], int, int]:
        put, *_ = super().insert_new(batch)
        return put, len(put), 0

    def delete(self, batch: Iterable[Row], *, ordered: bool) -> set[Key]:
        ordered = ordered and self.ordered
        going = {key: row for key, row in self.settle(batch, ordered=ordered).items() if self._is_live(key)}
        self._pending = [(key, None, row.ts if ordered else None) for key, row in going.items()]
        return set(going)

    def overwritten(self, batch: Iterable[Row], *, whole: bool) -> set[Key]:
        partitions = {self.key(row)[0] for row in batch}
        return self.dropped({partition for partition, _ in self.live} | partitions if whole else partitions)

    def dropped(self, partitions: Iterable[str]) -> set[Key]:
        self._emptied = set(partitions)
        return {key for key in (*self.bases, *self.logs) if key[0] in self._emptied}

    def committed(self, requested: str, completed: str, put: Mapping[Key, Row], gone: set[Key]) -> None:
        assert self.planned is None, "compactions are done at once here"
        for of in (self.bases, self.logs):
            for key in [key for key in of if key[0] in self._emptied]:
                del of[key]
        self.live = {place for place in self.live if place[0] not in self._emptied}
        changes = self._pending or [(key, row, row.ts) for key, row in put.items()]
        self._pending, self._emptied, made = [], set(), set()
        for key, row, ts in changes:
            stored = None if row is None else Stored(row, requested)
            if self._is_live(key):
                self.logs[key] = self._after(self.logs.get(key), Logged(stored, ts))
            elif stored is not None:
                made.add(self.place(key))
                self.bases[key] = stored
        self.live |= made
        self._look()
        self.note(requested, completed)

    def _look(self) -> None:
        shown = {key: self._visible(key) for key in (*self.bases, *self.logs)}
        self.rows = {key: of for key, of in shown.items() if of is not None}

    def _visible(self, key: Key) -> Stored | None:
        return super()._visible(key) if key in self.bases else self.logs[key].row
