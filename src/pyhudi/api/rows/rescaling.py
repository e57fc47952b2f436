"""Giving partitions other numbers of buckets: the rows of those that change are written anew, in one commit."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.api.handle import TableHandle
from pyhudi.api.reporting import told_write
from pyhudi.api.rows.stored import AsSource, write_stored_rows
from pyhudi.api.writes import WriteCall, WriteCourse
from pyhudi.errors import Invalid
from pyhudi.format.keys.bucket_counts import BucketCounts, parse_rules
from pyhudi.index.bucket_counts import count_by_partition
from pyhudi.options.resolve import without_operation
from pyhudi.table.facts.bucket_facts import (
    BUCKET_COUNT_DEFAULT,
    BUCKET_COUNT_MAX,
    BucketFacts,
    Rescaling,
    facts_of_table,
    read_rules,
)
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import Operation, PreparedWrite
from pyhudi.write.operation import WriteResult
from pyhudi.write.place.buckets import rules_in_force
from pyhudi.write.preparation import prepare_write
from pyhudi.write.rows.partitions import rows_of_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleResult:
    """What a rescaling did, or would do.

    `requested`, `completed`: its times; None for a dry run, and where the rules are those in force already.
    `partitions`: path -> the numbers of buckets before and after, of those whose rows were written anew. `rows`: how
    many these are.
    """

    requested: str | None
    completed: str | None
    partitions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rows: int = 0


class RescaleCalls:
    """The call of `HudiTable` that rescales buckets."""

    _handle: TableHandle

    def rescale_buckets(
        self,
        rules: str,
        *,
        default: int | None = None,
        options: Mapping[str, object] | None = None,
        dry_run: bool = False,
    ) -> RescaleResult:
        """Give partitions other numbers of buckets: those whose number changes are written anew, in one commit.

        `rules`: such as `"2026-1[12].*,16;.*,4"`, a regular expression and a number each. The first one that is found
        in a partition's path says its number. They replace all rules of before: a partition that only an older rule
        takes goes back to the default, so give again those that shall stay (`bucket_rules` tells them).

        `default`: for partitions that no rule takes; None: as before. `dry_run`: only says which partitions would be
        written. The rows get the time of this commit, as in Apache Hudi.

        Memory: as of `insert_overwrite`. Spec: format/indexes.md section 4. Raises: Invalid for rules that are none,
        and for a table without fixed buckets, or without partitions.
        """
        return _rescale_buckets(self._handle, rules, default, WriteCall(options), dry_run=dry_run)

    def bucket_rules(self) -> BucketCounts | None:
        """The rules by which partitions have numbers of buckets of their own; None where there are none.

        Raises: as `rescale_buckets`.
        """
        snapshot, _, settings = self._handle.prepare(None)
        return rules_in_force(snapshot, _facts(snapshot, settings.bucket_options))


def _rescale_buckets(
    handle: TableHandle, rules: str, default: int | None, call: WriteCall, *, dry_run: bool
) -> RescaleResult:
    """As `RescaleCalls.rescale_buckets`."""
    snapshot, _, settings = handle.prepare(call.options)
    facts = _facts(snapshot, settings.bucket_options)
    asked = read_rules(rules, facts.engine) or parse_rules(rules)
    before = _in_force(snapshot, facts)
    wanted = BucketCounts(asked, _default(default, before, snapshot, facts))
    if dry_run:
        return RescaleResult(requested=None, completed=None, partitions=_changes(snapshot, before, wanted))
    if before == replace(wanted, instant=before.instant):
        return RescaleResult(requested=None, completed=None)

    changed: dict[str, tuple[int, int]] = {}
    options = without_operation(call.options or {})
    result = told_write(_rescale, handle, Operation.INSERT_OVERWRITE.value.lower(), options)(wanted, changed, call)
    return RescaleResult(
        requested=result.requested, completed=result.completed, partitions=changed, rows=result.inserted
    )


def _rescale(
    handle: TableHandle, wanted: BucketCounts, changed: dict[str, tuple[int, int]], call: WriteCall
) -> WriteResult:
    """Carry out a rescaling. `changed`: gets the partitions whose rows were written."""
    operation = Operation.INSERT_OVERWRITE
    snapshot, merged, settings = handle.prepare(call.options)
    course = WriteCourse(handle, snapshot, merged, settings, operation, call)

    def prepare(now: Snapshot, as_source: AsSource) -> PreparedWrite:
        facts = _facts(now, settings.bucket_options)
        changed.clear()
        changed.update(_changes(now, _in_force(now, facts), wanted))
        source = as_source(rows_of_partitions(now, changed))
        prepared = prepare_write(now, source, operation, settings, is_unordered=False)
        return replace(prepared, buckets=replace(facts, rescaling=Rescaling(wanted, frozenset(changed))))

    return write_stored_rows(handle, course, operation, settings, prepare, call)


def _facts(snapshot: Snapshot, options: Mapping[str, str]) -> BucketFacts:
    facts = facts_of_table(snapshot.config, options)
    if facts is None or facts.engine != "SIMPLE":
        found = "another index" if facts is None else f"the engine {facts.engine}"
        raise Invalid(
            f"table '{snapshot.config.name}': expected hoodie.index.type=BUCKET with the engine SIMPLE, found {found}; "
            "cluster() resizes rings of buckets"
        )
    if not snapshot.config.partition_by:
        raise Invalid(
            f"table '{snapshot.config.name}': is not partitioned, and only partitions get other numbers of buckets; "
            "write its rows to a new table with another hoodie.bucket.index.num.buckets"
        )
    return facts


def _in_force(snapshot: Snapshot, facts: BucketFacts) -> BucketCounts:
    """The rules in force; without any, no rule and the count of all partitions."""
    return rules_in_force(snapshot, facts) or BucketCounts((), facts.bucket_count or BUCKET_COUNT_DEFAULT)


def _default(asked: int | None, before: BucketCounts, snapshot: Snapshot, facts: BucketFacts) -> int:
    if asked is None:
        return before.default
    if type(asked) is not int or not 1 <= asked <= BUCKET_COUNT_MAX:
        raise Invalid(f"default={asked!r}: expected a number of buckets from 1 to {BUCKET_COUNT_MAX:,}")
    if facts.is_stored and asked != before.default:
        raise Invalid(
            f"default={asked!r}: table '{snapshot.config.name}' stores "
            f"hoodie.bucket.index.num.buckets={before.default} for partitions that no rule takes; "
            f"give a last rule '.*,{asked}' instead"
        )
    return asked


def _changes(snapshot: Snapshot, before: BucketCounts, after: BucketCounts) -> dict[str, tuple[int, int]]:
    """The partitions whose numbers of buckets differ: before and after."""
    partitions = snapshot.listing.partitions()
    old, new = (count_by_partition(one, partitions) for one in (before, after))
    return {path: (old[path], new[path]) for path in sorted(partitions) if old[path] != new[path]}
