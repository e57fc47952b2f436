"""A table could lose a row, keep a deleted one, or tell another story about its past than it told at the time.

A random sequence of writes runs on a table and on a dict. The snapshot must equal the dict, time travel
every past copy, incremental reads of every cut the rows that were written last in it; the metadata table
must list what the storage holds.
"""

from collections.abc import Sequence
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyhudi.engine.local.executors import LocalExecutor, SerialExecutor
from pyhudi.errors import NotFound
from pyhudi.format.timeline.instant import WRITE_ACTIONS
from pyhudi.storage.memory import MemoryStorage
from pyhudi.write.operation import WriteResult
from tests.support.bucket_model import BUCKETS, BucketModel
from tests.support.log_model import LogModel
from tests.support.model import Handles, Key, Model, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

QUICK = settings(
    max_examples=12,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
LONG = settings(QUICK, max_examples=300, stateful_step_count=30)

ONLY_LOGS = {"hoodie.parquet.small.file.limit": "0"}
"""No base file is rewritten to take new rows, which would settle its rows as copy-on-write does."""

WRITES = ("commit", "deltacommit", "replacecommit")
CITIES = ("oslo", "rome")
keys = st.integers(0, 14).map(lambda n: f"k{n:02}")
rows = st.builds(
    Row, keys, st.sampled_from(CITIES), st.integers(0, 6), st.integers(-9, 9), st.sampled_from([None, "", "é"])
)
batches = st.lists(rows, max_size=18)
variants = st.fixed_dictionaries(
    {
        "is_partitioned": st.booleans(),
        "version": st.sampled_from([6, 8, 9, 5, 7]),
        "logs": st.sampled_from([None, None, "parquet", "avro", "hfile"]),  # their blocks; None: copy-on-write
        "order": st.sampled_from(["event time", "commit time", "commit time, ordered"]),
        "compacts_after": st.sampled_from(["1", "3", "10"]),
        "retained": st.sampled_from([None, None, 1, 2, 4]),  # commits whose files are not cleaned; None: nothing is
        "commits_max": st.sampled_from(["2", "3", "30"]),  # on the timeline: more are archived
        "row_group_size": st.sampled_from(["1", "125829120"]),
        "index": st.sampled_from(["SIMPLE", "BUCKET", "BUCKET rings"]),  # rings: where there are logs
        "executor": st.sampled_from([SerialExecutor(), LocalExecutor(2)]),
    }
)


def bucket_properties(has_rings: bool) -> dict[str, str]:
    return {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": str(BUCKETS),
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING" if has_rings else "SIMPLE",
    }


class TableAgainstDict(RuleBasedStateMachine):
    """One table beside one dict."""

    @initialize(variant=variants, seed=st.integers(0, 999))
    def create(self, variant: dict[str, object], seed: int) -> None:
        is_partitioned, order = bool(variant["is_partitioned"]), variant["order"]
        self.version = int(str(variant["version"]))
        executor = variant["executor"]
        assert isinstance(executor, SerialExecutor | LocalExecutor)
        self.retained: int | None = variant["retained"]  # type: ignore[assignment]
        self.has_logs = variant["logs"] is not None
        self.is_bucketed = variant["index"] != "SIMPLE"
        self.has_rings = self.has_logs and variant["index"] == "BUCKET rings"
        clock = StepClock()
        self.storage = MemoryStorage(clock_ms=lambda: clock.ms)
        self.handles = Handles(self.storage, clock, seeded_uuids(seed), executor)
        self.table = self.handles.create(
            partition_by="city" if is_partitioned else None,
            ordering=None if order == "commit time" else "ts",
            table_version=self.version,
            table_type="MERGE_ON_READ" if self.has_logs else "COPY_ON_WRITE",
            properties={
                **({"hoodie.logfile.data.block.format": variant["logs"], **ONLY_LOGS} if self.has_logs else {}),
                "hoodie.metadata.compact.max.delta.commits": variant["compacts_after"],
                "hoodie.clean.automatic": str(self.retained is not None).lower(),
                "hoodie.clean.commits.retained": str(self.retained or 1),
                "hoodie.keep.max.commits": variant["commits_max"],
                "hoodie.keep.min.commits": "1",
                "hoodie.timeline.compaction.batch.size": "2",
                "hoodie.parquet.block.size": variant["row_group_size"],
                **(bucket_properties(self.has_rings) if self.is_bucketed else {}),
                **({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"} if order != "event time" else {}),
            },
        )
        kind = Model if not self.has_logs else BucketModel if self.is_bucketed else LogModel
        self.model = kind(is_partitioned, ordered=order != "commit time", event_time=order == "event time")
        if isinstance(self.model, LogModel):
            self.model.is_of_version_6 = self.version <= 7
        if isinstance(self.model, BucketModel):
            self.model.has_rings = self.has_rings
        self.fresh = 0
        self.saved: tuple[str, dict[str, object]] | None = None
        self.restored = ""

    @rule(batch=batches)
    def upsert(self, batch: Sequence[Row]) -> None:
        batch = self.model.none_beaten_by_deleted(batch)
        put, inserted, updated = self.model.upsert(batch)
        result = self.table.upsert(arrow(batch))
        self.check_result(result, "upsert", inserted, updated, 0)
        self.model.committed(result.requested or "", result.completed or "", put, set())

    @rule(
        count=st.integers(0, 12),
        city=st.sampled_from(CITIES),
        is_bulk=st.booleans(),
        sort=st.sampled_from(["NONE", "GLOBAL_SORT", "PARTITION_SORT"]),
    )
    def add(self, count: int, city: str, is_bulk: bool, sort: str) -> None:
        """Insert or bulk insert rows with keys that were never used."""
        batch = [Row(f"n{self.fresh + n}", city, n % 7, n) for n in reversed(range(count))]
        self.fresh += count
        write = self.table.bulk_insert if is_bulk else self.table.insert
        expected = self.model.insert_counts(map(self.model.key, batch))
        result = write(arrow(batch), options={"hoodie.bulkinsert.sort.mode": sort})
        self.check_result(result, "bulk_insert" if is_bulk else "insert", *expected, 0)
        self.model.committed(
            result.requested or "", result.completed or "", {self.model.key(row): row for row in batch}, set()
        )

    @precondition(lambda self: self.model.past)
    @rule(data=st.data(), ordered=st.booleans())
    def delete(self, data: st.DataObject, ordered: bool) -> None:
        """Delete stored and absent keys, with and without the ordering column."""
        stored = sorted((of.row for of in self.model.rows.values()), key=lambda row: (row.city, row.id))
        batch = data.draw(st.lists(st.one_of(rows, st.sampled_from(stored)) if stored else rows, max_size=12))
        ordered = ordered and self.orders_deletes
        gone = self.model.delete(batch, ordered=ordered)
        columns = ["city", "id", *(["ts"] if ordered else [])]
        result = self.table.delete(arrow(batch, columns))
        self.check_result(result, "delete", 0, 0, len(gone))
        self.model.committed(result.requested or "", result.completed or "", {}, gone)

    # What is about to be rewritten must not be replaced.
    @precondition(lambda self: not self.has_rings and not self.is_compacting)
    @rule(batch=batches, whole=st.booleans())
    def overwrite(self, batch: Sequence[Row], whole: bool) -> None:
        """Overwrite the partitions of the rows, or the whole table."""
        batch = self.model.distinct(batch)
        gone = self.model.overwritten(batch, whole=whole)
        write = self.table.insert_overwrite_table if whole else self.table.insert_overwrite
        result = write(arrow(batch))
        self.check_result(result, "insert_overwrite_table" if whole else "insert_overwrite", len(batch), 0, 0)
        put = {self.model.key(row): row for row in batch}
        self.model.committed(result.requested or "", result.completed or "", put, gone)

    @precondition(lambda self: self.model.rows and not self.has_rings and not self.is_compacting)
    @rule(data=st.data())
    def delete_partitions(self, data: st.DataObject) -> None:
        """Delete some partitions, such as have rows or had some; where it cleans, the latter may be gone."""
        pasts = [past.rows for past in self.model.past] if self.retained is None else [self.model.rows]
        partitions = sorted({key[0] for rows in pasts for key in rows})
        chosen = data.draw(st.lists(st.sampled_from(partitions), min_size=1))
        gone = self.model.dropped(chosen)
        result = self.table.delete_partitions(chosen)
        self.check_result(result, "delete_partition", 0, 0, 0)
        self.model.committed(result.requested or "", result.completed or "", {}, gone)

    @rule(batch=batches)
    def insert_what_is_new(self, batch: Sequence[Row]) -> None:
        """Insert rows, but for those whose key is stored."""
        batch = self.model.none_beaten_by_deleted(batch)
        put, *counts = self.model.insert_new(batch)
        result = self.table.insert(arrow(batch), options={"hoodie.datasource.insert.dup.policy": "drop"})
        self.check_result(result, "insert", *counts, 0)
        self.model.committed(result.requested or "", result.completed or "", put, set())

    @precondition(lambda self: self.has_logs and self.model.past)
    @rule()
    def compact(self) -> None:
        result = self.table.compact()
        assert result.completed is not None or result.reason
        assert isinstance(self.model, LogModel)
        self.model.compacted()

    @precondition(lambda self: self.has_logs and self.model.past and not self.is_bucketed)
    @rule()
    def schedule_compaction(self) -> None:
        """Whoever writes next meets a pending compaction. No answer changes."""
        assert isinstance(self.model, LogModel)
        if self.model.planned is None and self.table.schedule_compaction().requested is not None:
            self.model.scheduled()

    @precondition(lambda self: self.has_logs and self.model.past)
    @rule(blocks=st.sampled_from(["1", "2", "3"]))
    def compact_logs(self, blocks: str) -> None:
        """No answer changes."""
        self.table.log_compact(options={"hoodie.log.compaction.blocks.threshold": blocks})

    @precondition(lambda self: self.model.past and not self.is_bucketed and not self.is_compacting)
    @rule(column=st.sampled_from(["v", "ts,id", ""]), size=st.sampled_from(["5000", "100000"]))
    def cluster(self, column: str, size: str) -> None:
        """No answer changes. Logs are merged, where there are any."""
        strategy = "hoodie.clustering.plan.strategy"
        result = self.table.cluster(
            options={f"{strategy}.sort.columns": column, f"{strategy}.target.file.max.bytes": size}
        )
        assert result.completed is not None or result.reason
        if isinstance(self.model, LogModel):
            self.model.compacted()

    @precondition(lambda self: self.model.past and self.saved is None and not self.is_compacting)
    @rule()
    def savepoint(self) -> None:
        self.saved = self.table.savepoint().requested, deepcopy(vars(self.model))

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self) -> None:
        """Go back to the savepoint, whatever was written, compacted, cleaned and archived since; then delete it."""
        assert self.saved is not None
        self.restored, model = self.saved
        result = self.table.restore(self.restored)
        assert (result.requested is None) == (not result.rolled_back) == bool(result.reason)
        vars(self.model).update(model)
        self.saved = None
        assert read_rows(self.table.scan(as_of=self.restored).to_arrow()) == self.model.rows
        self.table.delete_savepoint(self.restored)
        if self.table.metadata.partitions_in_use:
            assert self.table.metadata.validate().differences == ()

    @rule()
    def reopen(self) -> None:
        self.table = self.handles.open()

    @precondition(lambda self: self.model.past)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.model.past) - 1))
        self.check_past(at)

    @precondition(lambda self: self.model.past)
    @rule(data=st.data())
    def read_increment(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.model.past)))
        end = data.draw(st.integers(start, len(self.model.past)))
        self.check_range(start, end)

    @rule(wanted=st.lists(keys, max_size=4))
    def look_up(self, wanted: Sequence[str]) -> None:
        found = read_rows(self.table.lookup(wanted)) if self.model.past else {}
        assert found == {key: of for key, of in self.model.rows.items() if key[1] in wanted}

    @invariant()
    def snapshot_equals_the_dict(self) -> None:
        answer = self.table.scan()
        table = answer.to_arrow()
        if not self.model.past:
            assert table.num_rows == 0
            return
        assert read_rows(table) == self.model.rows
        names = {path.rpartition("/")[2] for path in answer.files()}
        groups = {name.lstrip(".").partition("_")[0] for name in names}  # what a row in a log has instead
        assert set(table.column("_hoodie_file_name").to_pylist()) <= (names | groups if self.has_logs else names)
        numbers = table.column("_hoodie_commit_seqno").to_pylist()
        assert len(set(numbers)) == len(numbers), "a sequence number is there twice"

    @invariant()
    def storage_is_in_order(self) -> None:
        problems = problems_on(self.storage, has_metadata_table=bool(self.model.past))
        assert [text for text in problems if not (self.is_compacting and "table: pending compaction" in text)] == []

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        for at in range(len(self.model.past)):
            self.check_past(at)
        pieces: dict[Key, object] = {}
        for end in range(1, len(self.model.past) + 1):
            self.check_range(end - 1, end)
            self.check_range(0, end)
            pieces.update(self.model.between(end - 1, end))
        assert self.model.rows.items() <= pieces.items(), "the pieces do not add up to the whole"

    def check_result(self, result: WriteResult, operation: str, *counts: int) -> None:
        assert result.operation == operation
        assert (result.inserted, result.updated, result.deleted) == counts
        newest = [i for i in self.table.timeline() if i.action in WRITE_ACTIONS][-1]
        assert (newest.requested, newest.completed) == (result.requested, result.completed)

    @property
    def orders_deletes(self) -> bool:
        """Whether deletes may have the ordering column."""
        return True

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction is planned and not done."""
        return isinstance(self.model, LogModel) and self.model.planned is not None

    @property
    def first_retained(self) -> int:
        """The first of the past commits whose readers must find every file. Compactions are commits, too."""
        if self.retained is None:
            return 0
        done = [i.requested for i in self.table.timeline(history=True) if i.action in WRITES and i.completed]
        oldest = sorted(done)[-self.retained :][0] if done else ""
        # Cleans before a restore retained what was newer then.
        return sum(past.requested < oldest or past.requested <= self.restored for past in self.model.past)

    def check_past(self, at: int) -> None:
        past = self.model.past[at]
        try:
            assert read_rows(self.table.scan(as_of=past.requested).to_arrow()) == past.rows
        except NotFound:
            if at >= self.first_retained:
                raise

    def check_range(self, start: int, end: int) -> None:
        times = [past.requested if self.version <= 6 else past.completed for past in self.model.past]
        after, until = times[start - 1] if start else None, times[end - 1] if end else "2000-01-01"
        expected = self.model.between(start, end) if end > start else {}
        try:
            found = read_rows(self.table.incremental(after, until).to_arrow())
        except NotFound:
            if start >= self.first_retained:
                raise
            return
        if start >= self.first_retained:
            assert found == expected
            return
        # Where files were cleaned away, later ones stand in: rows that were written again since are missing, and one
        # whose delete a later row undid, so that the row in the base file counts again, is there.
        later = [past.rows for past in self.model.past[max(end - 1, 0) :]]
        assert all(expected.get(key) == of or any(rows.get(key) == of for rows in later) for key, of in found.items())


class TestTableAgainstDict(TableAgainstDict.TestCase):  # type: ignore[misc, valid-type]
    settings = QUICK


@pytest.mark.long
class TestTableAgainstDictForLong(TableAgainstDict.TestCase):  # type: ignore[misc, valid-type]
    settings = LONG
