"""What an expression gives for the rows of a file: bounds and nulls, or a Bloom filter of its values.

Base files and logs are read alike. Of a log the rows of the data blocks count as they are stored, whatever merging
makes of them. A bootstrapped base file has the columns of its source, and those that the partition path tells. A file
that lacks the column all the same has nulls for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.data import data_schema, read_batches, read_row_count
from pyhudi.format.log.headers import instant_time
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.metadata.derive.blooms import BLOOMS
from pyhudi.metadata.derive.column_bounds import ColumnBounds, FileBounds, Tally
from pyhudi.metadata.derive.stats import File
from pyhudi.metadata.kinds.expression_index import ExpressionIndex
from pyhudi.predicate.evaluate import evaluate
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.rows import AsWritten, read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.slices.slice_log import DATA_TYPES, Counts, log_source, slice_blocks
from pyhudi.table.view.file_system_view import SourceFile
from pyhudi.table.view.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class _Task:
    storage: Storage
    stored: pa.Schema
    index: ExpressionIndex
    file: File
    source: SourceFile | None
    as_written: AsWritten
    counts: Counts


def read_expression_bounds(
    snapshot: Snapshot, files: Sequence[File], index: ExpressionIndex, stored: pa.Schema, executor: Executor, *,
    evolution: Evolution | None, counts: Counts,
) -> list[FileBounds]:  # fmt: skip
    """The bounds of an expression in files, under the column's name. `snapshot`: tells the sources of bootstrapped
    files. `stored`: every column that rows may have. `evolution`, `counts`: as for `read_bounds`.

    Requests: the column of a base file; the whole of a log. Memory: a row group of the column, or a batch, a worker.
    Seen: 1.0.2 states the size of the column as the file's size, and as the unpacked size twice as much.
    """
    return executor.run(_bounds, [_task(snapshot, file, index, stored, evolution, counts) for file in files])


def read_expression_blooms(
    snapshot: Snapshot, files: Sequence[File], index: ExpressionIndex, stored: pa.Schema, executor: Executor, *,
    instant: str, evolution: Evolution | None, counts: Counts,
) -> pa.Table:  # fmt: skip
    """The filters of an expression's values in files, as `BLOOMS`. Cost, memory: as above, and the filters.

    Seen: 1.0.2 also makes filters for logs, and names the instant of the action, not of the file. It fails on a null.
    Here nulls are in no filter, and neither are empty texts, which no filter can hold.
    """
    assert index.bloom is not None
    found = executor.run(_bloom, [_task(snapshot, file, index, stored, evolution, counts) for file in files])

    kind = index.bloom.kind
    rows = [
        {"partition": partition, "file": name, "type": kind, "instant": instant, "bloom_filter": text.encode()}
        for (partition, name, _), text in zip(files, found, strict=True)
    ]
    return pa.Table.from_pylist(rows, BLOOMS)


def count_unheld(
    snapshot: Snapshot, file: File, index: ExpressionIndex, stored: pa.Schema, bloom: BloomFilter, *,
    evolution: Evolution | None, counts: Counts,
) -> int:  # fmt: skip
    """The number of rows in a file whose expression gives a text that the filter lacks. Empty texts do not count."""
    count = 0
    for values in _values(_task(snapshot, file, index, stored, evolution, counts)):
        texts = _texts(values)
        count += len(texts) - int(pc.sum(bloom.may_contain(texts)).as_py() or 0)
    return count


def _task(
    snapshot: Snapshot, file: File, index: ExpressionIndex, stored: pa.Schema, evolution: Evolution | None,
    counts: Counts,
) -> _Task:  # fmt: skip
    source = snapshot.source_of_file(*file[:2])
    return _Task(snapshot.storage, stored, index, file, source, snapshot.as_written_with(evolution), counts)


def _bounds(task: _Task) -> FileBounds:
    partition, name, size_bytes = task.file
    tally = Tally(task.index.column)
    for values in _values(task):
        tally.add(values)
    bounds = tally.bounds()
    column = ColumnBounds(bounds.value_count, bounds.null_count, bounds.low, bounds.high, size_bytes, 2 * size_bytes)
    return FileBounds(partition, name, {task.index.source: column})


def _bloom(task: _Task) -> str:
    assert task.index.bloom is not None
    bloom = task.index.bloom.create()
    for values in _values(task):
        bloom.add(_texts(values))
    return bloom.encode()


def _texts(values: pa.Array) -> pa.Array:
    texts = values.drop_null().cast(pa.string())
    return texts.filter(pc.not_equal(texts, ""))


def _values(task: _Task) -> Iterator[pa.Array]:
    partition, name, size_bytes = task.file
    path, source = join(partition, name), task.index.source
    wanted = pa.schema([task.stored.field(source)])
    is_base = BaseFileName.parse(name) is not None
    assert is_base or LogFileName.parse(name) is not None
    for batch in _base_batches(task, path) if is_base else _log_batches(task, path, size_bytes):
        yield one_array(evaluate(task.index.node, conform_batch(batch, wanted, path=path)))


def _base_batches(task: _Task, path: str) -> Iterator[pa.RecordBatch]:
    source = task.index.source
    yield from read_stored_batches(
        task.storage, path, [source], use_threads=False, source=task.source, as_written=task.as_written
    )


def _log_batches(task: _Task, path: str, size_bytes: int) -> Iterator[pa.RecordBatch]:
    source, evolution = task.index.source, task.as_written.evolution
    blocks = slice_blocks([log_source(task.storage, path, size_bytes)], task.counts)
    for block in (block for block in blocks if block.type in DATA_TYPES):
        assert block.type is not BlockType.DELETE
        then = None if evolution is None else evolution.of_instant(instant_time(block), [source])
        stored = [source] if then is None else then.stored
        if stored and stored[0] in data_schema(block).names:
            for batch in read_batches(block, columns=stored):
                yield batch if then is None else then.named(batch)
        else:
            yield pa.record_batch({source: pa.nulls(read_row_count(block), task.stored.field(source).type)})
