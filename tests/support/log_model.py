"""A merge-on-read table as a dict: of each key what its base file holds and what its log comes to.

As `format/log-format.md` section 6 has it, which is not what one would think: a delete with an ordering value goes on
fighting later rows, and a row after a delete without one may give way to the base row that was deleted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.support.model import Key, Model, Row, Stored


@dataclass(frozen=True)
class Logged:
    """What the log of a key comes to: a row or, where that is None, a delete with this ordering value or without."""

    row: Stored | None
    ts: int | None


@dataclass
class LogModel(Model):
    """Updates and deletes of keys that have a base row go to its log; others are new base rows.

    `is_of_version_6`: where rows have an ordering value, those of a log go by it in every mode; a row after a delete
    does away with it, and a delete in the log with whatever the base file has (same section, "in 0.x").
    """

    is_of_version_6: bool = False
    bases: dict[Key, Stored] = field(default_factory=dict)
    logs: dict[Key, Logged] = field(default_factory=dict)
    planned: dict[Key, Stored] | None = None
    """What a pending compaction will make of the bases."""
    later: dict[Key, Logged] = field(default_factory=dict)
    """What the logs since then come to."""
    _pending: list[tuple[Key, Row | None, int | None]] = field(default_factory=list)

    def none_beaten_by_deleted(self, batch: Iterable[Row]) -> list[Row]:
        """An older row makes the writer rewrite the file group, which this model does not know: see
        `tests/property/test_deleted_rows_stay_deleted.py`, which is about these.
        """
        return [replace(row, ts=max([row.ts, *self._deleted_ts(self.key(row))])) for row in batch]

    def _deleted_ts(self, key: Key) -> list[int]:
        """The ordering values of the base rows of a deleted key, as files have them and a pending compaction will."""
        if key in self.rows or not self.event_time:
            return []
        return [held[key].row.ts for held in (self.bases, self.planned or {}) if key in held]

    def upsert(self, batch: Iterable[Row]) -> tuple[dict[Key, Row], int, int]:
        settled = self.settle(batch, ordered=self.ordered)
        self._pending = [(key, row, row.ts) for key, row in settled.items()]
        new = sum(key not in self.bases for key in settled)
        return settled, new, len(settled) - new

    def delete(self, batch: Iterable[Row], *, ordered: bool) -> set[Key]:
        ordered = ordered and self.ordered
        settled = self.settle(batch, ordered=ordered)
        known = {key: row for key, row in settled.items() if key in self.bases}
        self._pending = [(key, None, row.ts if ordered else None) for key, row in known.items()]
        return set(known)

    def insert_new(self, batch: Iterable[Row]) -> tuple[dict[Key, Row], int, int]:
        """As `upsert`, of rows whose key is not stored."""
        put = {k: r for k, r in self.settle(batch, ordered=self.ordered).items() if k not in self.rows}
        return self.upsert(put.values())

    def overwritten(self, batch: Iterable[Row], *, whole: bool) -> set[Key]:
        """Base and log go together."""
        partitions = {self.key(row)[0] for row in batch}
        return {key for key in self.bases if whole or key[0] in partitions}

    def dropped(self, partitions: Iterable[str]) -> set[Key]:
        return {key for key in self.bases if key[0] in set(partitions)}

    def committed(self, requested: str, completed: str, put: Mapping[Key, Row], gone: set[Key]) -> None:
        """Takes in what the last call prepared or, where that is nothing, what replaces file groups as a whole."""
        if not self._pending:
            for key in gone:
                for of in (self.bases, self.logs, self.planned or {}, self.later):
                    of.pop(key, None)
            self._pending = [(key, row, row.ts) for key, row in put.items()]
        for key, row, ts in self._pending:
            if row is not None and key not in self.bases:
                self.bases[key] = Stored(row, requested)
            elif key in self.bases:
                stored = None if row is None else Stored(row, requested)
                self.logs[key] = self._after(self.logs.get(key), Logged(stored, ts))
                if self.planned is not None and key in self.planned:
                    self.later[key] = self._after(self.later.get(key), Logged(stored, ts))
        self._pending = []
        self._look()
        super().committed(requested, completed, {}, set())

    def scheduled(self) -> None:
        """A compaction is planned. Keys that are deleted by now will be in no base file: their next row is new."""
        self.planned, self.later = dict(self.rows), {}
        for key in self.bases.keys() - self.rows.keys():
            del self.bases[key], self.logs[key]

    def compacted(self) -> None:
        """A pending compaction is done, then one of everything; none writes a row anew."""
        if self.planned is not None:
            self.bases |= self.planned
            for key in self.planned:
                self.logs.pop(key, None)
            self.logs |= self.later
            self._look()
        self.bases, self.logs, self.planned, self.later = dict(self.rows), {}, None, {}

    def _look(self) -> None:
        self.rows = {key: of for key in self.bases if (of := self._visible(key)) is not None}

    def _after(self, before: Logged | None, new: Logged) -> Logged:
        goes_by_ts = self.ordered if self.is_of_version_6 else self.event_time
        if before is None or not goes_by_ts or (self.is_of_version_6 and before.row is None):
            return new
        if new.row is None:
            if before.row is None and before.ts is None:
                return before
            return before if new.ts is not None and before.ts is not None and before.ts > new.ts else new
        if before.row is None and before.ts is None:
            return new
        assert before.ts is not None
        assert new.ts is not None
        return new if new.ts >= before.ts else before

    def _visible(self, key: Key) -> Stored | None:
        base, logged = self.bases[key], self.logs.get(key)
        if logged is None:
            return base
        if self.is_of_version_6 and logged.row is None:
            return None
        if self.event_time and logged.ts is not None and logged.ts < base.row.ts:
            return base
        return logged.row
