"""The judge of a write, with what the write tells of itself."""

from collections.abc import Mapping

from pyhudi.format.schema.conversion import leave_out_fields
from pyhudi.format.schema.differences import describe_changes
from pyhudi.format.timeline.records import REPLACES
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.read.plan import log_reading
from pyhudi.table.slices.written_keys import KeyReading
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.conflicts.verdict import Judge, Mine, Refused, TableState, Verdict
from pyhudi.txn.conflicts.writes import WriteRules, compacted_since, judge_write, refuse_other_counts, refuse_revived
from pyhudi.versions import LogNaming
from pyhudi.write.common_keys import find_apart
from pyhudi.write.input.source import Operation, PreparedWrite
from pyhudi.write.input.tagging import looks_keys_up
from pyhudi.write.place.buckets import rules_in_force
from pyhudi.write.place.nested_partitions import new_partitions
from pyhudi.write.place.non_blocking import appends_freely
from pyhudi.write.place.plan import WritePlan
from pyhudi.write.revived_keys import find_revived
from pyhudi.write.settings import WriteSettings


def judge_of(session: WriteSession, prepared: PreparedWrite, settings: WriteSettings, plan: WritePlan) -> Judge:
    """Judges by file groups, and where these alone do not decide, by the keys that both wrote."""
    rules, storage = _conflict_rules(session, prepared, settings, plan), session.access.storage
    snapshot = session.snapshot
    reading = KeyReading(snapshot.schema_with_meta, log_reading(snapshot), snapshot.as_written)
    finds_keys = prepared.operation is Operation.UPSERT and prepared.buckets is None

    def judge(mine: Mine, now: TableState) -> Verdict:
        verdict = judge_write(mine, now, rules)
        if prepared.buckets is not None and any(one.operation in REPLACES for one in now.changes):
            before, after = (
                rules_in_force(of, prepared.buckets) for of in (session.snapshot, session.access.snapshot())
            )
            verdict = verdict if before == after else refuse_other_counts(mine, now)
        if isinstance(verdict, Refused) and verdict.by_keys:
            others = [other for other in now.changes if other.requested in verdict.by_keys]
            apart = find_apart(storage, mine.change, others, reading, is_global=rules.is_global)
            verdict = judge_write(mine, now, rules, apart)
        if isinstance(verdict, Refused) or not finds_keys:
            return verdict

        compacted = compacted_since(mine, now)
        revived = find_revived(session.access.snapshot(), mine.change, compacted) if compacted else None
        return verdict if revived is None else refuse_revived(mine, now, revived)

    return judge


def _conflict_rules(
    session: WriteSession, prepared: PreparedWrite, settings: WriteSettings, plan: WritePlan
) -> WriteRules:
    finds_keys = looks_keys_up(prepared.operation, settings) and prepared.operation is not Operation.DELETE
    by_keys = not settings.conflict_strategy
    missed, config = frozenset[str](), session.snapshot.config
    if by_keys and prepared.operation is Operation.DELETE:
        missed = _missed(prepared.counted.counts, plan, is_global=settings.has_global_index)
    return WriteRules(
        looks_keys_up=finds_keys and by_keys,
        is_global=settings.has_global_index,
        by_bucket=prepared.buckets is not None,
        shares_logs=by_keys and config.version.log_naming is LogNaming.AFTER_WRITE,
        schemas=known_schemas(config, prepared.schema_before, prepared.schema_text),
        missed=missed,
        new_partitions=new_partitions(plan) if config.may_nest_partitions else frozenset(),
        planned=frozenset((task.partition, task.file_id) for task in plan.tasks if by_keys),
        appends_freely=appends_freely(prepared, settings),
        passes_clusterings=settings.passes_clusterings,
        doubles_rows=settings.doubles_rows,
        doubled_for=frozenset(task.base_instant for task in plan.doubled if task.base_instant is not None),
        schema_before=prepared.schema_before,
        brings=describe_changes(prepared.schema_before, prepared.schema_text),
        new_schemas=known_schemas(config, prepared.schema_text)
        if prepared.schema_text != prepared.schema_before
        else frozenset(),
    )


def known_schemas(config: TableConfig, *texts: str | None) -> frozenset[str | None]:
    """Schemas that another write may state beside this one: these, also without the columns that files lack."""
    stated = {text if text is None else leave_out_fields(text, config.left_out) for text in texts}
    return frozenset({*texts, *stated})


def _missed(counts: Mapping[str, int], plan: WritePlan, *, is_global: bool) -> frozenset[str]:
    """The partitions in which a delete has rows that the plan has no file group for. By a global index: all or none."""
    found: dict[str, int] = {}
    for task in plan.tasks:
        found[task.partition] = found.get(task.partition, 0) + task.updates + task.inserts
    if is_global:
        return frozenset(counts) if sum(found.values()) < sum(counts.values()) else frozenset()
    return frozenset(partition for partition, rows in counts.items() if found.get(partition, 0) < rows)
