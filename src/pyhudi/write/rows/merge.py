"""A merge: rows of a source meet rows of the table, and clauses say what becomes of those that meet and of the others.

All that a merge does is one write of one snapshot: changed rows, new rows, and rows that are marked to go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.told_names import listed
from pyhudi.predicate.evaluate import evaluate
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.read.stored_keys import stored_key_spec
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.key_settings import KeySettings
from pyhudi.write.input.source import LEAVES, Operation
from pyhudi.write.rows.changes import (
    columns_shown,
    identity_columns,
    refuse_fields_of_structs,
    refuse_losing,
    refuse_rules_of_two,
    refuse_without_schema,
    same_values,
    staying_columns,
    whole_rows,
    with_values,
)
from pyhudi.write.rows.clauses import Clause, MergeClauses, clause_masks, parse_clauses
from pyhudi.write.rows.join import Numbers, SourceRows
from pyhudi.write.rows.matching import OpenSkipping, matching_rows
from pyhudi.write.rows.new_rows import FindStored, new_rows
from pyhudi.write.rows.sides import Condition, Sides, parse_condition


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge a source into the table. Memory: the source, and one row group of the table beside it.

    `on`: SQL text or names of columns. `is_global`: a record key is one row of the table, not of its partition.
    `moves`: the write moves a row whose partition column changes. `keys`: how the write spells keys. `find_stored`:
    looks record keys up.
    """

    source: pa.Table
    on: Any
    clauses: MergeClauses
    aliases: tuple[str, str]
    is_global: bool
    moves: bool
    keys: KeySettings
    find_stored: FindStored

    @property
    def operation(self) -> Operation:
        return Operation.UPSERT

    def check(self, snapshot: Snapshot) -> None:
        self._bound(snapshot)

    def rows(self, snapshot: Snapshot, skipping: OpenSkipping) -> pa.RecordBatchReader:
        bound = self._bound(snapshot)
        schema = whole_rows(snapshot).append(pa.field(LEAVES, pa.bool_()))
        return pa.RecordBatchReader.from_batches(schema, bound.rows(skipping(snapshot)))

    def _bound(self, snapshot: Snapshot) -> "_Bound":
        refuse_without_schema(snapshot, "merge")
        refuse_fields_of_structs(snapshot.config, "merge")
        shown, own = columns_shown(snapshot), set(snapshot.schema.names)
        target = pa.schema([field for field in shown if field.name in own])
        sides = Sides(target, self.source.schema, self.aliases[1], self.aliases[0])
        on = self.on
        if on is None:
            on = default_on(snapshot.config, self.source.column_names, is_global=self.is_global)
        condition = parse_condition(on, sides)

        given = self.clauses
        bound = _Bound(
            self,
            snapshot,
            condition,
            matched=parse_clauses(
                given.matched_update, given.matched_delete, what="when_matched", sides=sides, schema=sides.schema,
                snapshot=snapshot, has_source=True,
            ),
            by_source=parse_clauses(
                given.by_source_update, given.by_source_delete, what="when_not_matched_by_source", sides=sides,
                schema=sides.target_alone.of_target, snapshot=snapshot, has_source=False,
            ),
            inserts=parse_clauses(
                given.not_matched_insert, None, what="when_not_matched", sides=sides,
                schema=sides.source_alone.of_source, snapshot=snapshot, has_source=True,
            ),
        )  # fmt: skip
        bound.check()
        return bound


def default_on(config: TableConfig, source: Sequence[str], *, is_global: bool) -> list[str]:
    """The columns that say which row it is: the key's, and those of the partition where the source has them.

    `source`: the names of its columns. `is_global`: as in `Merge`.
    Raises: Invalid for a table without key columns, and a source that lacks one.
    """
    if not config.record_key:
        raise Invalid(f"merge into table '{config.name}': expected on=…, as the table has no record key columns")
    known = {name.lower() for name in source}
    if lacking := [name for name in config.record_key if name.lower() not in known]:
        raise Invalid(
            f"merge into table '{config.name}': expected on=…, or the record key '{lacking[0]}' in the source, found "
            f"{listed(source)}"
        )
    partition = () if is_global else config.partition_by
    return list(dict.fromkeys([*config.record_key, *(name for name in partition if name.lower() in known)]))


@dataclass(frozen=True, slots=True)
class _Bound:
    """A merge bound to a snapshot."""

    merge: Merge
    snapshot: Snapshot
    on: Condition
    matched: list[Clause]
    by_source: list[Clause]
    inserts: list[Clause]

    def check(self) -> None:
        """Refuse what cannot be done. Raises: Invalid, Unsupported."""
        config = self.snapshot.config
        if any(clause.assigned is not None for clause in (*self.matched, *self.by_source, *self.inserts)):
            refuse_rules_of_two(self.snapshot, "merge")
        if self.inserts and not config.record_key:
            raise Unsupported(
                f"merge into table '{config.name}': when_not_matched_insert expects record key columns, found keys "
                "that the writer makes up; insert the new rows by insert"
            )
        needed = [*identity_columns(self.snapshot), *config.compared_by]
        for clause in self.inserts:
            given = {one.field.name for one in clause.assigned or ()}
            missing = [name for name in needed if name in self.snapshot.schema.names and name not in given]
            if missing:
                raise Invalid(
                    f"{clause.what}: expected values of the key, partition and ordering columns of table "
                    f"'{config.name}', found none of '{missing[0]}'"
                )

    def rows(self, skipping: Any) -> Iterator[pa.RecordBatch]:
        """The rows to write: those that are changed or go, then those that are new."""
        sides, source = self.on.sides, _one_batch(self.merge.source)
        view = sides.source_rows(source)
        keys = [evaluate(node, view) for _, node in self.on.equal]
        index = SourceRows(keys, len(source))
        is_met = np.zeros(len(source), dtype=bool)

        whole = whole_rows(self.snapshot)
        changes = bool(self.matched or self.by_source)
        names = whole.names if changes else [*self.on.target_columns(), *identity_columns(self.snapshot)]
        predicate = None if self.by_source else self.on.of_target(keys, columns_shown(self.snapshot))
        for stored, shown in matching_rows(self.snapshot, names, predicate, skipping):
            targets, sources = self._pairs(index, shown, source)
            is_met[sources] = True
            if self.matched and len(targets):
                yield from self._matched(stored, shown, source, targets, sources)
            if self.by_source:
                alone = np.ones(len(stored), dtype=bool)
                alone[targets] = False  # a row stands in `targets` once for each row of the source that it meets
                if alone.any():
                    mask = pa.array(alone)
                    yield from self._by_source(stored.filter(mask), shown.filter(mask))

        if self.inserts and not is_met.all():
            yield from self._new(source.filter(pa.array(~is_met)))

    def _pairs(self, index: SourceRows, shown: pa.RecordBatch, source: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """The pairs of a batch of the table's rows: numbers of its rows, and of the source's."""
        sides = self.on.sides
        view = sides.target_rows(_padded(shown, sides.target))
        found: list[tuple[Numbers, Numbers]] = []
        for targets, sources in index.pairs([evaluate(node, view) for node, _ in self.on.equal], len(shown)):
            if self.on.rest is not None:
                right = sides.source_rows(source.take(pa.array(sources)))
                both = [*view.take(pa.array(targets)).columns, *right.columns]
                pairs = pa.RecordBatch.from_arrays(both, schema=sides.schema)
                kept = np.asarray(pc.fill_null(evaluate(self.on.rest, pairs), False))
                targets, sources = targets[kept], sources[kept]
            found.append((targets, sources))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([t for t, _ in found]), np.concatenate([s for _, s in found])

    def _matched(
        self, stored: pa.RecordBatch, shown: pa.RecordBatch, source: pa.RecordBatch, targets: Numbers, sources: Numbers
    ) -> Iterator[pa.RecordBatch]:
        distinct, first = np.unique(targets, return_index=True)
        if len(distinct) < len(targets):
            deletes_all = len(self.matched) == 1 and self.matched[0].assigned is None and self.matched[0].where is None
            if not deletes_all:
                self._refuse_several(stored, targets)
            targets, sources = distinct, sources[first]
        at = pa.array(targets)
        own = stored.take(at)
        pairs = self.on.sides.pairs(shown.take(at), source.take(pa.array(sources)))
        yield from self._changed(self.matched, own, pairs)

    def _by_source(self, stored: pa.RecordBatch, shown: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from self._changed(self.by_source, stored, self.on.sides.target_alone.target_rows(shown))

    def _changed(self, clauses: list[Clause], stored: pa.RecordBatch, view: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows that clauses change or delete. `view`: the same rows under the names of conditions."""
        rows = stored.select(whole_rows(self.snapshot).names)
        for clause, mask in zip(clauses, clause_masks(clauses, view), strict=True):
            own = rows.filter(mask)
            if not len(own):
                continue
            if clause.assigned is None:
                yield _marked(own, goes=True)
                continue
            changed = with_values(own, clause.values(view.filter(mask)), self.snapshot.config)
            self._refuse_moved(clause, changed, own)
            refuse_losing(self.snapshot, changed, own, what=clause.what)
            yield _marked(changed, goes=False)

    def _new(self, source: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        view = self.on.sides.source_alone.source_rows(source)
        schema, made = whole_rows(self.snapshot), []
        for clause, mask in zip(self.inserts, clause_masks(self.inserts, view), strict=True):
            taken = view.filter(mask)
            values = clause.values(taken)
            columns = [values.get(field.name, pa.nulls(len(taken), field.type)) for field in schema]
            made.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        merge = self.merge
        rows = pa.Table.from_batches(made, schema)
        stored = stored_key_spec(self.snapshot, names_column=merge.keys.names_column)
        spec = merge.keys.spec(stored, self.snapshot.config)
        for batch in new_rows(
            rows, self.snapshot, self.on, self.inserts, spec,
            is_global=merge.is_global, find_stored=merge.find_stored,
        ):  # fmt: skip
            yield _marked(batch, goes=False)

    def _refuse_several(self, stored: pa.RecordBatch, targets: Numbers) -> None:
        counts = np.bincount(targets)
        row, config = int(np.argmax(counts > 1)), self.snapshot.config
        names = [name for name in identity_columns(self.snapshot) if name in stored.schema.names]
        shown = ", ".join(f"{name}={stored.column(name)[row].as_py()!r}" for name in names)
        raise Invalid(
            f"merge into table '{config.name}': expected at most one row of the source for each row of the table, "
            f"found {counts[row]} for the row with {shown}; nothing was written. Make the source's rows distinct, or "
            "tell them apart in on=…"
        )

    def _refuse_moved(self, clause: Clause, rows: pa.RecordBatch, stored: pa.RecordBatch) -> None:
        """Raises: Invalid where an update would give a row another key, or move it to another partition."""
        config = self.snapshot.config
        for name, way_out in staying_columns(config, moves=self.merge.moves).items():
            new, old = rows.column(name), stored.column(name)
            moved = pc.invert(same_values(new, old))
            if pc.any(moved).as_py():
                row = pc.index(moved, True).as_py()
                raise Invalid(
                    f"{clause.what}: column '{name}' says which row of table '{config.name}' it is, and "
                    f"stays; expected {old[row].as_py()!r}, found {new[row].as_py()!r}; leave the column out, or "
                    f"{way_out}"
                )


def _marked(rows: pa.RecordBatch, *, goes: bool) -> pa.RecordBatch:
    return rows.append_column(pa.field(LEAVES, pa.bool_()), pa.repeat(pa.scalar(goes), len(rows)))


def _padded(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with nulls in the columns that nobody reads."""
    known = set(rows.schema.names)
    columns = [rows.column(f.name) if f.name in known else pa.nulls(len(rows), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if len(batches) > 1:
        raise Unsupported(
            f"merge: expected a source whose columns hold less than 2 GiB of text each, found {table.nbytes:,} bytes; "
            "merge it in parts"
        )
    return batches[0] if batches else _padded(pa.RecordBatch.from_arrays([], names=[]), table.schema)
