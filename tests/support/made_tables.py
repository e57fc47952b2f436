"""Merge-on-read tables laid down file by file, in memory: what happened to them is what a test says, in its order."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.log.block import HeaderKey
from pyhudi.format.log.delete import make_deletes
from pyhudi.format.log.headers import data_header
from pyhudi.format.log.writer import encode_avro_block, encode_delete_block
from pyhudi.format.names import PARTITION_METAFILE, PROPERTIES, BaseFileName, LogFileName
from pyhudi.format.properties import encode_partition_metadata, encode_table_properties
from pyhudi.format.schema.conversion import (
    META_FIELDS,
    RECORD_KEY,
    arrow_from_avro,
    avro_from_arrow,
    select_fields,
    with_meta_fields,
)
from pyhudi.format.timeline.action_files import encode_commit_avro, encode_commit_json
from pyhudi.format.timeline.instant import STATES, Instant, State
from pyhudi.format.timeline.lsm import HistoryFileName
from pyhudi.format.timeline.records import CommitMetadata, WriteStat
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.layout import TimelineLayout, timeline_layout
from pyhudi.timeline.lsm_writer import ArchivedAction, append_actions

COLUMNS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
GROUP = "f-0"
TOKEN = "0-1-0"

DEFAULT_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
LATEST_PAYLOAD = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"

EVENT_TIME: dict[int, dict[str, str]] = {
    5: {"hoodie.table.precombine.field": "ts", "hoodie.compaction.payload.class": DEFAULT_PAYLOAD},
    6: {"hoodie.table.precombine.field": "ts", "hoodie.compaction.payload.class": DEFAULT_PAYLOAD},
    8: {"hoodie.table.precombine.field": "ts", "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
    9: {"hoodie.table.ordering.fields": "ts", "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
}
"""By table version, what says that the greater `ts` wins."""

COMMIT_TIME: dict[int, dict[str, str]] = {
    5: {"hoodie.compaction.payload.class": LATEST_PAYLOAD},
    6: {"hoodie.compaction.payload.class": LATEST_PAYLOAD},
    8: {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
    9: {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
}
"""By table version, what says that the later row wins."""

Row = Mapping[str, Any]


def t(second: int) -> str:
    """A requested time."""
    return f"202611211100{second:02d}000"


def done(second: int) -> str:
    """A completion time: half a second after the requested time of this number."""
    return f"202611211100{second:02d}500"


def row(key: str, ts: object, v: str | None, **others: object) -> Row:
    return {"id": key, "ts": ts, "v": v, **others}


@dataclass
class MadeTable:
    """A table without partitions whose files are laid down by hand.

    Of a data file it is said what wrote it (`by`), so that `commit` can name it. `columns`: of the rows, without meta
    fields. `properties`: beside those that every table has.
    """

    version: int
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: pa.Schema = COLUMNS
    storage: MemoryStorage = field(default_factory=MemoryStorage)
    _stats: dict[str, list[WriteStat]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": str(self.version),
            "hoodie.timeline.layout.version": "1" if self.version <= 6 else "2",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.base.file.format": "PARQUET",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.table.initial.version": str(self.version),
            "hoodie.table.create.schema": self.schema_text,
        }
        properties = {**own, **self.properties}
        self.storage.put_new(PROPERTIES, encode_table_properties(properties, epoch_ms=0, is_update=False))
        metafile = encode_partition_metadata(requested=t(1), partition="", epoch_ms=0)
        self.storage.put_new(PARTITION_METAFILE, metafile)
        self.layout: TimelineLayout = timeline_layout(properties)

    @property
    def schema_text(self) -> str:
        return avro_from_arrow(self.columns, record_name="t")

    def base(self, by: str, *rows: Row, group: str = GROUP, token: str = TOKEN, is_named: bool = True) -> None:
        """A base file. `is_named`: the commit of `by` states it."""
        name = BaseFileName(group, token, by, ".parquet").format()
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_batches([self._stored(by, rows, name)]), sink)
        self._put(name, sink.getvalue(), by, group, is_named=is_named)

    def log(
        self,
        by: str,
        *blocks: bytes,
        base: str | None = None,
        number: int = 1,
        group: str = GROUP,
        token: str = TOKEN,
        is_named: bool = True,
    ) -> None:
        """A log file, called after `by`, or after its slice's base instant `base` as up to version 6."""
        assert (base is not None) == (self.version <= 6), "up to version 6 logs are called after their base file"
        self.named_log(base or by, by, *blocks, number=number, group=group, token=token, is_named=is_named)

    def named_log(
        self,
        instant: str,
        by: str,
        *blocks: bytes,
        number: int = 1,
        group: str = GROUP,
        token: str = TOKEN,
        is_named: bool = True,
    ) -> None:
        """A log file that is called after `instant`, whoever wrote it."""
        name = LogFileName(group, instant, number, token).format()
        self._put(name, b"".join(blocks), by, group, is_named=is_named, log_version=number)

    def rows(self, by: str, *rows: Row, compacts: Sequence[str] = (), **header: str) -> bytes:
        """A data block of whole rows; a column that a row does not have is null. `header`: entries by their names."""
        entries = data_header(
            instant_time=by, schema_text=with_meta_fields(self.schema_text), compacted_instants=compacts
        )
        entries |= {HeaderKey[name]: text for name, text in header.items()}
        return encode_avro_block([self._stored(by, rows, GROUP)], entries)

    def partial_rows(self, by: str, *rows: Row) -> bytes:
        """A data block of rows that have the columns of the first one only."""
        names = {*META_FIELDS, *rows[0]}
        text = select_fields(with_meta_fields(self.schema_text), names)
        entries = data_header(instant_time=by, schema_text=text, is_partial=True)
        whole = self._stored(by, rows, GROUP)
        return encode_avro_block([whole.select([n for n in whole.schema.names if n in names])], entries)

    def deletes(self, by: str, *deletes: tuple[object, ...], ordering: Sequence[str] = ("ts",)) -> bytes:
        """A delete block of keys with their ordering values; None for a delete that carries none."""
        keys, *values = (list(column) for column in zip(*deletes, strict=True))
        columns = [pa.array(of, self.columns.field(name).type) for name, of in zip(ordering, values, strict=True)]
        records = make_deletes(pa.array(keys, pa.string()), pa.repeat("", len(keys)), columns)
        return encode_delete_block(records, instant_time=by, schema_text=with_meta_fields(self.schema_text))

    def commit(self, by: str, completed: str | None = None, *, action: str = "deltacommit") -> None:
        """Complete an instant, a millisecond after its requested time unless said otherwise."""
        instant = Instant(by, action, "COMPLETED", completed or str(int(by) + 1))
        for state in STATES[:2]:
            self.storage.put_new(self.layout.path(replace(instant, state=state)), b"")
        self.storage.put_new(self.layout.path(instant), self._metadata(by))

    def begin(self, by: str, *, action: str = "deltacommit", state: State = "INFLIGHT") -> None:
        """An instant that is pending."""
        for one in STATES[: STATES.index(state) + 1]:
            self.storage.put_new(self.layout.path(Instant(by, action, one)), b"")

    def archive(self, *instants: tuple[str, str], action: str = "deltacommit") -> None:
        """Instants and their completion times that are in the history alone; on version 6 they are forgotten."""
        if not self.layout.has_completion_times:
            return
        actions = [
            ArchivedAction(Instant(by, action, "COMPLETED", completed), self._metadata(by), None)
            for by, completed in instants
        ]
        name = HistoryFileName(instants[0][0], instants[-1][0], 0)
        append_actions(self.storage, self.layout.history_folder, actions, name, confirm=lambda: None)

    def open(self) -> HudiTable:
        return HudiTable.open("", storage=self.storage, executor=SerialExecutor())

    def shown(self, column: str = "v", **query: str) -> dict[str, Any]:
        """Of each key of a query's answer the value of this column. Fails when a key is there twice."""
        answer = self.open().scan(**query).to_arrow()  # type: ignore[arg-type]
        keys = answer.column(RECORD_KEY).to_pylist()
        assert len(set(keys)) == len(keys), f"a key is there twice: {sorted(keys)}"
        return dict(zip(keys, answer.column(column).to_pylist(), strict=True))

    def _put(
        self, name: str, content: bytes, by: str, group: str, *, is_named: bool, log_version: int | None = None
    ) -> None:
        self.storage.put_new(name, content)
        stat = WriteStat(group, name, partition_path="", file_size_in_bytes=len(content), log_version=log_version)
        self._stats.setdefault(by, []).extend([stat] if is_named else [])

    def _metadata(self, by: str) -> bytes:
        stats = {"": tuple(self._stats.get(by, ()))}
        metadata = CommitMetadata(stats, "UPSERT", {"schema": self.schema_text})
        return encode_commit_json(metadata) if self.version <= 6 else encode_commit_avro(metadata)

    def _stored(self, by: str, rows: Sequence[Row], name: str) -> pa.RecordBatch:
        """The rows as they are stored, with meta fields."""
        schema = arrow_from_avro(with_meta_fields(self.schema_text))
        meta = [dict(zip(META_FIELDS, (by, f"{by}_0_{at}", one["id"], "", name), strict=True))
                for at, one in enumerate(rows)]  # fmt: skip
        whole = [{**of, **one} for of, one in zip(meta, rows, strict=True)]
        return pa.RecordBatch.from_pylist(whole, schema=schema)
