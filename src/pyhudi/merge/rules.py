"""The rules by which rows with the same key are merged, as frozen values. `outcomes.py` applies them row by row.

A merge-on-read table merges twice: first the records of the log with each other, then the result with the base file.
Spec: format/log-format.md section 6.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

from pyhudi.format.schema.conversion import RECORD_KEY, column_defaults
from pyhudi.format.struct_fields import column_around
from pyhudi.merge.mergers import RecordMerger

IS_DELETED = "_hoodie_is_deleted"
OPERATION = "_hoodie_operation"


class MergeMode(StrEnum):
    """The merge modes, as `hoodie.record.merge.mode` spells them."""

    COMMIT_TIME = "COMMIT_TIME_ORDERING"
    EVENT_TIME = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class DeleteRule(StrEnum):
    """Which records a delete wins over.

    LATEST: over everything before it. ORDERED: as its ordering value says; but a delete without ordering value (a
    commit-time delete) wins over what is before it, and loses to the row after it. ARRIVAL: as in readers of 0.x.
    Within the log the ordering value decides; but a row wins over a delete block's entry before it, and such an entry
    wins over the base row.
    """

    LATEST = "LATEST"
    ORDERED = "ORDERED"
    ARRIVAL = "ARRIVAL"


class Fill(StrEnum):
    """Which values of the winning row are replaced by the other row's, column by column.

    DEFAULTS: values equal to the column's default, which is null unless the schema says otherwise. NULLS: nulls.
    UNAVAILABLE: texts and bytes that equal a marker, which stands for a value that the source did not send.
    """

    DEFAULTS = "IGNORE_DEFAULTS"
    NULLS = "NULLS"
    UNAVAILABLE = "FILL_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class DeleteMark:
    """A row is a delete if this column's value, as text, equals this text."""

    column: str
    text: str
    ignores_case: bool = False


@dataclass(frozen=True, slots=True)
class MergeRules:
    """The merge rules of a table. Picklable if the merger is.

    `ordering`: the columns to compare, one after the other; a dot leads into a struct.
    `log_by_ordering`: of two log rows, the one with the greater ordering value wins, the later on a tie. If false, the
    later row always wins. `base_by_ordering`: the same for a base row and a log row, which is the later of the two.
    `marks`: what marks a row as deleted, besides the columns that always do.
    `fill`: which values of the winning row give way. `fills_log`: they also give way within the log. `defaults`: where
    they are defaults, the default of each column whose default is not null.
    `newer_meta_fields`: a merged row has the later row's meta fields, whichever row won.
    `row_deletes_win`: a row marked as deleted wins over the base row, whatever their ordering values.
    `merger`: merges two rows that are no deletes, instead of `log_by_ordering` and `base_by_ordering`.
    """

    ordering: tuple[str, ...] = ()
    log_by_ordering: bool = False
    base_by_ordering: bool = False
    deletes: DeleteRule = DeleteRule.LATEST
    marks: tuple[DeleteMark, ...] = ()
    fill: Fill | None = None
    fills_log: bool = False
    unavailable: str = ""
    defaults: tuple[tuple[str, pa.Scalar], ...] = ()
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

    def with_defaults(self, schema_text: str) -> "MergeRules":
        """The same, with the defaults of these columns, where the rules ask for them. `schema_text`: an Avro schema.

        Raises: Invalid for a default that is no value of its column's type.
        """
        return self if self.fill is not Fill.DEFAULTS else replace(self, defaults=column_defaults(schema_text))

    def columns_needed(self, wanted: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
        """The columns to read from base and log rows to answer with the columns `wanted`, in the order of `present`.

        With a merger, all of `present`: a merger may look at any column. Otherwise the columns that the rules compare.
        """
        present = tuple(present)
        if self.merger is not None:
            return present
        own = (self.key, *map(column_around, self.ordering), *self.mark_columns)
        needed = {*wanted, *own}
        return tuple(name for name in present if name in needed)

    @property
    def wins_whole(self) -> bool:
        """Whether one of two rows always wins as it is, and a delete wins by the same rule as a row."""
        is_alike = self.log_by_ordering == self.base_by_ordering or self.deletes is DeleteRule.ARRIVAL
        return self.keeps_rows_whole and is_alike

    @property
    def keeps_rows_whole(self) -> bool:
        """Whether every merged row equals one stored row, if no block is partial."""
        return self.merger is None and self.fill is None

    @property
    def mark_columns(self) -> tuple[str, ...]:
        """The columns that may mark a row as a delete. A table need not have them all."""
        return (IS_DELETED, OPERATION, *(mark.column for mark in self.marks))


def commit_time(*, marks: tuple[DeleteMark, ...] = ()) -> MergeRules:
    """The later record wins, be it a row or a delete. Ordering columns are not even read.

    Spec: format/log-format.md section 6, COMMIT_TIME_ORDERING.
    """
    return MergeRules(marks=marks)


def event_time(*, ordering: tuple[str, ...], marks: tuple[DeleteMark, ...] = ()) -> MergeRules:
    """The greater ordering value wins, the later on a tie. Spec: as above, EVENT_TIME_ORDERING."""
    return MergeRules(ordering, log_by_ordering=True, base_by_ordering=True, deletes=DeleteRule.ORDERED, marks=marks)


def custom(merger: RecordMerger, *, ordering: tuple[str, ...] = (), marks: tuple[DeleteMark, ...] = ()) -> MergeRules:
    """A merger merges two rows. If one of two records is a delete, event time decides.

    Seen: 1.0.x does so; 1.1 and later pass deletes to the merger, too.
    """
    return MergeRules(ordering, deletes=DeleteRule.ORDERED, marks=marks, merger=merger)
