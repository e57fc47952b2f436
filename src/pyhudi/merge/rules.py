"""How rows of one key are settled in a table, as frozen values; what they mean row by row is in `outcomes.py`.

A merge-on-read table settles twice: the records of the log among themselves, and what is left of them with the base
file. Spec: format/log-format.md section 6.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pyhudi.format.schema import RECORD_KEY
from pyhudi.merge.mergers import RecordMerger

IS_DELETED = "_hoodie_is_deleted"
OPERATION = "_hoodie_operation"


class MergeMode(StrEnum):
    """As `hoodie.record.merge.mode` spells it."""

    COMMIT_TIME = "COMMIT_TIME_ORDERING"
    EVENT_TIME = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class DeleteRule(StrEnum):
    """Against what a delete wins.

    LATEST: against everything before it. ORDERED: by ordering value, except that one without ordering value (a
    commit-time delete) wins, and loses to the row after it. ARRIVAL: as readers of 0.x: in the log by ordering
    value; but a row wins over the entry of a delete block before it, and such an entry over the base row.
    """

    LATEST = "LATEST"
    ORDERED = "ORDERED"
    ARRIVAL = "ARRIVAL"


class Fill(StrEnum):
    """Which values of the winning row give way to the other row's, column by column.

    DEFAULTS: those equal to the column's default, which is null unless the schema says otherwise. NULLS: nulls.
    UNAVAILABLE: texts and bytes that are the marker.
    """

    DEFAULTS = "IGNORE_DEFAULTS"
    NULLS = "NULLS"
    UNAVAILABLE = "FILL_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class DeleteMark:
    """A row is a delete where this column, as text, is this text."""

    column: str
    text: str
    ignores_case: bool = False


@dataclass(frozen=True, slots=True)
class MergeRules:
    """The rules of one table. Picklable, where its merger is.

    `ordering`: the columns that are compared, one after the other; a dot leads into a struct. `log_by_ordering`,
    `base_by_ordering`: whether of two rows the one with the greater ordering value wins, the later on a tie, or the
    later always: within the log, and of a log row and a base row. `marks`: what marks a row as deleted, besides the
    columns that always do. `fills_log`: whether `fill` holds within the log, too. `newer_meta_fields`: a merged row
    has the meta fields of the later row, whichever won. `row_deletes_win`: a row marked as deleted wins over the base
    row whatever its ordering value. `merger`: settles pairs of rows that are no deletes, instead of the two.
    """

    ordering: tuple[str, ...] = ()
    log_by_ordering: bool = False
    base_by_ordering: bool = False
    deletes: DeleteRule = DeleteRule.LATEST
    marks: tuple[DeleteMark, ...] = ()
    fill: Fill | None = None
    fills_log: bool = False
    unavailable: str = ""
    newer_meta_fields: bool = False
    row_deletes_win: bool = False
    merger: RecordMerger | None = None
    key: str = RECORD_KEY

    def __post_init__(self) -> None:
        by_ordering = self.log_by_ordering or self.base_by_ordering
        assert self.deletes is not DeleteRule.LATEST or not by_ordering, self
        assert self.fill is not None or not self.fills_log, self
        assert self.fill is not Fill.UNAVAILABLE or self.unavailable, self
        assert self.merger is None or self.fill is None, self

    def columns_needed(self, wanted: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
        """The columns to read of base and log rows, in their order, for an answer of the columns `wanted`.

        All of those `present` with a merger: it may look at any. Otherwise columns are settled one by one.
        """
        present = tuple(present)
        if self.merger is not None:
            return present
        own = (self.key, *(name.partition(".")[0] for name in self.ordering), *self.mark_columns)
        needed = {*wanted, *own}
        return tuple(name for name in present if name in needed)

    @property
    def wins_whole(self) -> bool:
        """Whether of two rows one wins as it is, and a delete as a row would: nothing is made of both."""
        is_alike = self.log_by_ordering == self.base_by_ordering or self.deletes is DeleteRule.ARRIVAL
        return self.keeps_rows_whole and is_alike

    @property
    def keeps_rows_whole(self) -> bool:
        """Whether every row of an answer is one that was written, unless that came with some of the columns only."""
        return self.merger is None and self.fill is None

    @property
    def mark_columns(self) -> tuple[str, ...]:
        """The columns that may say that a row is a delete, where the table has them."""
        return (IS_DELETED, OPERATION, *(mark.column for mark in self.marks))


def commit_time(*, marks: tuple[DeleteMark, ...] = ()) -> MergeRules:
    """The later one wins, row or delete: ordering columns are not even read.

    Spec: format/log-format.md section 6, COMMIT_TIME_ORDERING.
    """
    return MergeRules(marks=marks)


def event_time(*, ordering: tuple[str, ...], marks: tuple[DeleteMark, ...] = ()) -> MergeRules:
    """The greater ordering value wins, the later on a tie. Spec: as above, EVENT_TIME_ORDERING."""
    return MergeRules(ordering, log_by_ordering=True, base_by_ordering=True, deletes=DeleteRule.ORDERED, marks=marks)


def custom(merger: RecordMerger, *, ordering: tuple[str, ...] = (), marks: tuple[DeleteMark, ...] = ()) -> MergeRules:
    """A merger settles two rows; a delete and another record are settled by event time.

    Seen: 1.0.x does so; 1.1 and later hand deletes to the merger, too.
    """
    return MergeRules(ordering, deletes=DeleteRule.ORDERED, marks=marks, merger=merger)
