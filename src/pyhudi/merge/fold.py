"""Folds the records of a file slice's log to one record for each key, while they are read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.errors import Bug, CorruptFile, Invalid, Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.merge.latest import encode_keys
from pyhudi.merge.marks import find_deleted
from pyhudi.merge.ordering import Columns, lacks_value, normalized, ordering_fields, read_ordering
from pyhudi.merge.outcomes import Kind, Records
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.settle import Entries, settle_cells, settle_nothing, settle_plain
from pyhudi.merge.settle_custom import settle_custom
from pyhudi.options.told_names import listed

REDUCE_ROWS = 1 << 20
"""A fold takes in at least so many records before it reduces them, and at least as many as it already holds."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The folded log of a file slice: one record for each key.

    `entries`: the records; a key that ends up deleted has no row. `positions`: row positions in the base file that have
    a record, ascending; `position_states`: the number of each one's record. `keyed`: numbers of the records without a
    position, which are matched by key.
    """

    entries: Entries
    positions: np.ndarray
    position_states: np.ndarray
    keyed: np.ndarray
    rules: MergeRules
    schema: pa.Schema
    fields: list[pa.Field]
    path: str

    def __len__(self) -> int:
        return len(self.entries)


class LogFold:
    """Folds the rows and deletes of a log, block by block, in the order of `format/log-format.md` section 5.

    `schema`: the columns of the rows, including the record key and the columns that the rules compare. `path`: names
    the file slice in messages.

    Memory: the rows of all keys so far and, until they are reduced, the newly taken records: as many as are held
    already, at least `reduce_rows`. Besides its row, a record takes its key once more (text and 4 bytes), its ordering
    values, 10 bytes, 16 bytes for a position, and a byte for each column that partial blocks leave out. Reducing takes
    about 40 bytes a record and a copy of the remaining rows. `size_bytes` says what is held. A caller whose log is
    larger than its memory folds the log in parts, by a hash of the record key.
    """

    def __init__(
        self,
        rules: MergeRules,
        schema: pa.Schema,
        *,
        path: str = "",
        reduce_rows: int = REDUCE_ROWS,
    ) -> None:
        assert reduce_rows >= 1
        if schema.get_field_index(rules.key) < 0:
            raise Invalid(f"{path}: expected a column '{rules.key}' to merge by, found {listed(schema.names)}")

        self._rules = rules
        self._schema = schema
        self._fields = ordering_fields(schema, rules.ordering)
        self._path = path
        self._reduce_rows = reduce_rows
        self._held = 0
        self._pending: list[Entries] = []
        self._positions: list[tuple[np.ndarray, np.ndarray]] = []
        self._count = 0

    @property
    def ordering_types(self) -> list[pa.DataType]:
        """The types that the ordering values of deletes must have."""
        return [field.type for field in self._fields]

    @property
    def size_bytes(self) -> int:
        """The bytes held: rows, keys, ordering values and the numbers beside them."""
        own = sum(
            one.rows.nbytes + one.keys.nbytes + sum(column.nbytes for column in one.ordering) + 10 * len(one)
            + sum(mask.nbytes for mask in one.absent.values())
            for one in self._pending
        )  # fmt: skip
        return own + sum(entries.nbytes + positions.nbytes for entries, positions in self._positions)

    def add_rows(self, batch: pa.RecordBatch, *, is_partial: bool = False, positions: np.ndarray | None = None) -> None:
        """Take in rows of a data block, in file order. A block's rows may come in several calls.

        `is_partial`: the batch may lack columns of the schema; their values stay as in the row before.
        `positions`: the row position of each row in the base file. Give them only if they belong to this base file.
        """
        keys = self._checked_keys(batch.column(self._rules.key))
        rows, absent = self._conformed(batch, is_partial=is_partial)
        deleted = find_deleted(batch, self._rules)
        ordering = read_ordering(batch, self._rules.ordering, self._fields)

        kinds = np.full(len(batch), Kind.ROW, np.int8)
        is_commit_time = np.zeros(len(batch), np.bool_)
        if deleted is not None:
            kinds[deleted] = Kind.ROW_DELETE
            is_commit_time = deleted & lacks_value(ordering, len(batch), is_block=False)

        row = np.arange(len(batch))
        records = Records(kinds, is_commit_time)
        self._add(Entries(keys, records, row, normalized(ordering), rows, absent), positions)

    def add_deletes(
        self,
        keys: pa.Array,
        ordering: Sequence[pa.Array],
        *,
        is_commit_time: np.ndarray | None = None,
        positions: np.ndarray | None = None,
    ) -> None:
        """Take in the entries of a delete block.

        `ordering`: columns of `ordering_types`. `is_commit_time`: which deletes have no ordering value, as they are
        stored; None: those with null in all columns. A stored value of another class than the table's is null, too. It
        is the least value, and compares with no row of the log (`format/log/ordering.py`, `unwrap_ordering`).
        """
        if [column.type for column in ordering] != self.ordering_types:
            found = ", ".join(str(column.type) for column in ordering)
            raise Bug(f"{self._path}: expected ordering values of deletes as {self.ordering_types}, found {found}")

        count = len(keys)
        lacking = is_commit_time if ordering else None
        if lacking is None:
            lacking = lacks_value(ordering, count, is_block=True)
        records = Records(np.full(count, Kind.BLOCK_DELETE, np.int8), lacking)
        keys = self._checked_keys(keys.cast(self._schema.field(self._rules.key).type))
        row = np.full(count, -1, np.int64)
        self._add(Entries(keys, records, row, normalized(ordering), self._schema.empty_table(), {}), positions)

    def finish(self) -> Folded:
        """The fold of all records so far. More records may be added afterwards."""
        self._reduce()
        entries = self._pending[0]
        states, positions = self._positions[0]
        self._check_positions(entries, positions, states)

        has_position = np.zeros(len(entries), np.bool_)
        has_position[states] = True
        return Folded(
            entries,
            positions,
            states,
            np.flatnonzero(~has_position),
            self._rules,
            self._schema,
            self._fields,
            self._path,
        )

    def _add(self, entries: Entries, positions: np.ndarray | None) -> None:
        if not len(entries):
            return
        if positions is not None:
            if len(positions) != len(entries) or (len(positions) and positions.min() < 0):
                raise Bug(f"{self._path}: expected {len(entries):,} positions from 0 on, found {len(positions):,}")
            self._positions.append((self._count + np.arange(len(entries)), positions.astype(np.int64)))

        self._pending.append(entries)
        self._count += len(entries)
        if self._count - self._held >= max(self._reduce_rows, self._held):
            self._reduce()

    def _reduce(self) -> None:
        entries = self._joined()
        codes, keys = encode_keys(entries.keys)
        if len(keys) == len(codes):
            settled = settle_nothing(entries)
        elif self._rules.merger is not None:
            settled = settle_custom(entries, codes, keys, self._rules, self._fields)
        elif entries.absent or self._rules.fills_log:
            settled = settle_cells(entries, codes, keys, self._rules)
        else:
            settled = settle_plain(entries, codes, keys, self._rules)
        self._positions = [self._settled_positions(codes)]
        self._pending = [settled]
        self._held = self._count = len(settled)

    def _settled_positions(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each position once, ascending, with the record of its key. A position that several keys claim is repeated."""
        numbers = [numbers for numbers, _ in self._positions]
        positions = [positions for _, positions in self._positions]
        none = np.zeros(0, np.int64)
        states, rows_at = codes[np.concatenate([none, *numbers])], np.concatenate([none, *positions])

        order = np.lexsort((states, rows_at))
        states, rows_at = states[order], rows_at[order]
        is_new = np.append(True, (states[1:] != states[:-1]) | (rows_at[1:] != rows_at[:-1]))[: len(states)]
        return states[is_new], rows_at[is_new]

    def _joined(self) -> Entries:
        """All pending records as one `Entries`."""
        parts = self._pending
        starts = np.cumsum([0, *(one.rows.num_rows for one in parts)])
        rows = pa.concat_tables([self._schema.empty_table(), *(one.rows for one in parts)])

        absent = {}
        for name in {name for one in parts for name in one.absent}:
            masks = [one.absent.get(name, np.zeros(one.rows.num_rows, np.bool_)) for one in parts]
            absent[name] = np.concatenate(masks)

        kinds = np.concatenate([np.zeros(0, np.int8), *(one.records.kinds for one in parts)])
        lacking = np.concatenate([np.zeros(0, np.bool_), *(one.records.is_commit_time for one in parts)])
        row = [np.where(one.row < 0, -1, one.row + start) for one, start in zip(parts, starts[:-1], strict=True)]
        return Entries(
            _chunked([one.keys for one in parts], self._schema.field(self._rules.key).type),
            Records(kinds, lacking),
            np.concatenate([np.zeros(0, np.int64), *row]),
            [_chunked([one.ordering[at] for one in parts], field.type) for at, field in enumerate(self._fields)],
            rows,
            absent,
        )

    def _conformed(self, batch: pa.RecordBatch, *, is_partial: bool) -> tuple[pa.Table, dict[str, np.ndarray]]:
        """The batch with all columns of the schema, and for each column that it lacked the rows that lack it."""
        if not is_partial:
            if not batch.schema.equals(self._schema):
                raise Bug(f"{self._path}: expected log rows of {self._schema}, found {batch.schema}")
            return pa.Table.from_batches([batch]), {}

        if self._rules.merger is not None:
            who = type(self._rules.merger).__name__
            raise Unsupported(f"{self._path}: a block of rows with some columns only; merger {who} wants whole rows")

        others = [name for name in batch.schema.names if self._schema.get_field_index(name) < 0]
        missing = [name for name in self._schema.names if batch.schema.get_field_index(name) < 0]
        if others:
            raise Bug(f"{self._path}: expected columns of {self._schema.names}, found {', '.join(others)}")

        columns = [
            pa.nulls(len(batch), field.type) if field.name in missing else batch.column(field.name)
            for field in self._schema
        ]
        absent = {name: np.ones(len(batch), np.bool_) for name in missing}
        return pa.table(columns, schema=self._schema), absent

    def _checked_keys(self, keys: pa.Array) -> pa.Array:
        if keys.null_count:
            row = int(np.flatnonzero(np.asarray(keys.is_null()))[0])
            raise CorruptFile(
                self._path, 0, expected="a record key in each record of the log", found=f"null in {row:,}"
            )
        return keys

    def _check_positions(self, entries: Entries, positions: np.ndarray, states: np.ndarray) -> None:
        again = np.flatnonzero(positions[1:] == positions[:-1])
        if len(again):
            at = int(again[0])
            first, second = (entries.keys[int(state)].as_py() for state in states[at : at + 2])
            expected = f"one record key for row {int(positions[at]):,} of the base file, by the log's positions"
            raise CorruptFile(self._path, 0, expected=expected, found=f"'{first}' and '{second}'")


def _chunked(columns: Columns, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([one_array(column) for column in columns], kind)
