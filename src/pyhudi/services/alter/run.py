"""Changing a table's columns: one commit without rows, as Apache Hudi's ALTER TABLE makes it.

The writer holds the table from the beginning to the end, for there is no work between. A write that runs meanwhile is
judged when it completes, and finds that the schema has changed.
Spec: format/layout.md section 8. Seen: 0.15.0, 1.0.2, 1.2.0 (`BaseHoodieWriteClient.commitTableChange`).
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyhudi.errors import Conflict, Invalid, Unsupported
from pyhudi.format.schema.alterations import Alteration, altered
from pyhudi.format.schema.conversion import arrow_from_avro, record_name, with_meta_fields, without_meta_fields
from pyhudi.format.schema.differences import describe_alterations, describe_changes
from pyhudi.format.schema.history import NumberedSchema
from pyhudi.format.schema.history_text import schema_json
from pyhudi.format.schema.numbering import avro_of, first_numbers
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.merge.rules import IS_DELETED
from pyhudi.metadata.kinds import registry
from pyhudi.services.alter.stored_values import refuse_unfit_values
from pyhudi.services.indexing.plans import lists_of, pending_indexings
from pyhudi.table.read.plan import table_rules
from pyhudi.table.view.commits import SCHEMA
from pyhudi.table.view.schema_on_read import LATEST_SCHEMA
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.action.write import OneTurn, begin_write, rolled_back_on_failure
from pyhudi.txn.conflicts.changes import ALTERS
from pyhudi.txn.conflicts.verdict import Mine, Proceed, Refused, TableState, Verdict
from pyhudi.write.input.pinned_columns import refuse_pinned
from pyhudi.write.input.schema import refuse_unread_mark

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class AlterResult:
    """What a change of columns did.

    `requested`, `completed`: times of its commit; None where nothing was to change. `changes`: what each change made of
    the columns, in words and in their order; empty where nothing was to change.
    `dropped_indexes`: indexes of the metadata table that went, since they know columns by their names.
    """

    requested: str | None
    completed: str | None
    changes: str
    dropped_indexes: tuple[str, ...] = ()


def plan_alteration(snapshot: Snapshot, changes: Sequence[Alteration]) -> NumberedSchema:
    """The table's columns after the changes, one after the other. One get where the table has indexes.

    Raises: Invalid for a table without columns, and for a change that the table or its stored values forbid;
    Unsupported for a table whose files lack columns, or whose columns have defaults that merging goes by.
    """
    text = snapshot.schema_text
    if text is None:
        raise Invalid(
            f"table '{snapshot.config.name}': has no columns yet to change; its first write gives them, or `create` "
            "with a schema"
        )
    if snapshot.config.left_out:
        raise Unsupported(
            f"table '{snapshot.config.name}': hoodie.datasource.write.drop.partition.columns='true': expected a table "
            "whose files hold all columns; add columns by a write that has them"
        )
    refuse_pinned(snapshot, changes)
    if defaults := table_rules(snapshot, snapshot.schema).defaults:
        raise Unsupported(
            f"table '{snapshot.config.name}': column '{defaults[0][0]}' has a default, which gives way to older values "
            "where rows are merged, and a history of columns keeps no defaults; add or widen columns by a write"
        )
    schema = _numbered(snapshot)
    for change in changes:
        schema = altered(schema, change)
    if IS_DELETED not in snapshot.schema.names:
        refuse_unread_mark(arrow_from_avro(avro_of(schema, record_name(snapshot.config.name))))
    return schema


def run_alteration(
    session: WriteSession,
    changes: Sequence[Alteration],
    *,
    schema_before: str | None,
    extra_metadata: Mapping[str, str],
) -> AlterResult:
    """Change the table's columns. `schema_before`: the schema that the caller saw when it asked for the changes.

    Order: indexes that would mislead readers go, then the commit begins and completes. A crash between leaves a table
    without these indexes, or a pending commit that the next writer rolls back.
    Raises: as `plan_alteration`; Conflict where the schema is another one by now, or an index is being built.
    """
    snapshot = session.snapshot
    _refuse_changed(snapshot, schema_before)
    planned = plan_alteration(snapshot, changes)
    text = without_meta_fields(avro_of(planned, record_name(snapshot.config.name)))
    arrow_from_avro(text)
    before = _numbered(snapshot)
    if schema_json(planned) == schema_json(before):
        return AlterResult(None, None, "")

    _refuse_building(session)
    refuse_unfit_values(snapshot, before, planned, text)
    gone = _drop_misleading(session, before, planned)
    with ExitStack() as life:
        turns = OneTurn(session)
        action = "deltacommit" if snapshot.config.is_merge_on_read else "commit"
        write = begin_write(turns, session, action, b"", life)
        with rolled_back_on_failure(write):
            write.put_inflight(session.table.layout.encode_commit(CommitMetadata({}, ALTERS, {})))
            stated = schema_json(replace(planned, since=write.run.requested))
            extra = {**extra_metadata, SCHEMA: with_meta_fields(text), LATEST_SCHEMA: stated}
            metadata = CommitMetadata({}, ALTERS, extra)
            with write.completing(metadata, _judge) as (_, completed):
                pass
    changed = describe_alterations(changes)
    log.info("%s: columns were altered: %s", session.access.location.uri, changed)
    return AlterResult(write.run.requested, completed, changed, gone)


def _numbered(snapshot: Snapshot) -> NumberedSchema:
    """The table's columns with their numbers. They get their first ones here where no history has them."""
    assert snapshot.schema_text is not None
    return snapshot.history.schemas[0] if snapshot.history is not None else first_numbers(snapshot.schema_text)


def _refuse_changed(snapshot: Snapshot, schema_before: str | None) -> None:
    if snapshot.schema_text != schema_before:
        theirs = describe_changes(schema_before, snapshot.schema_text) or "no name or type differs"
        raise Conflict(
            f"table '{snapshot.config.name}': another writer changed the table's columns meanwhile ({theirs}); look at "
            "them, and alter the table again"
        )


def _judge(mine: Mine, now: TableState) -> Verdict:
    """Nobody who heeds the table's guard writes meanwhile. Another tool may have changed the schema."""
    for other in now.changes:
        if other.schema is not None:
            return Refused(
                f"{now.uri}: '{other.requested}' completed while the table was altered ('{mine.target.requested}'), "
                "and states a schema of its own; look at the columns, and alter the table again"
            )
    return Proceed()


def _refuse_building(session: WriteSession) -> None:
    """An index that is being built reads columns by the names of before."""
    pending = pending_indexings(session)
    if pending:
        names = ", ".join(sorted({name for one in pending for name in one.partitions})) or "an index"
        raise Conflict(
            f"indexing '{pending[0].instant.requested}' of {names} is pending: expected none while columns change; "
            "run_indexes() brings it to its end, drop_index takes it off"
        )


def _drop_misleading(session: WriteSession, before: NumberedSchema, after: NumberedSchema) -> tuple[str, ...]:
    """Drop the statistics of columns, where files of before would tell of another column, or of another type.

    They are stored by the names of columns. New columns and moved ones do no harm.
    """
    named = session.snapshot.config.metadata_partitions_named
    going = registry.telling_of_all_columns(named)
    if not going or _keeps_meaning(before, after):
        return ()
    going |= registry.dependents(going, named)
    log.warning(
        "%s: dropping the indexes %s: they know columns by their names of before; build_index makes them anew",
        session.access.location.uri, ", ".join(sorted(going)),
    )  # fmt: skip
    lists_of(session).drop(going)
    return tuple(sorted(going))


def _keeps_meaning(before: NumberedSchema, after: NumberedSchema) -> bool:
    """Whether every column of before is there under its name, with the same type."""
    return before.named_kinds().items() <= after.named_kinds().items()
