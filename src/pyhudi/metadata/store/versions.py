"""Stored records of the metadata table by key, and which versions of a key count."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import key_buffers

_SIZE_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class RecordVersions:
    """Records of one file group, still encoded.

    Order: by key (its bytes), then oldest first. `values`: null is a delete. `sources`: the number of the file or block
    that each record is from: 0 is the base file, then come the log's blocks. `schemas`: the Avro schema of each
    source's values.
    """

    keys: pa.Array
    values: pa.Array
    sources: npt.NDArray[np.int32]
    schemas: tuple[str, ...]
    path: str

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def starts(self) -> npt.NDArray[np.bool_]:
        """Which records are the first of their key."""
        starts = np.ones(len(self), np.bool_)
        if len(self) > 1:
            starts[1:] = pc.not_equal(self.keys[1:], self.keys[:-1]).to_numpy(zero_copy_only=False)
        return starts

    def live(self) -> "RecordVersions":
        """The records that no later delete of their key follows, without the deletes themselves."""
        if self.values.null_count == 0:
            return self

        groups = np.cumsum(self.starts) - 1
        positions = np.arange(len(self))
        last_delete = np.full(int(groups[-1]) + 1, -1, np.int64)

        is_delete = self.values.is_null().to_numpy(zero_copy_only=False)
        np.maximum.at(last_delete, groups[is_delete], positions[is_delete])
        return self.filter(positions > last_delete[groups])

    def newest(self) -> "RecordVersions":
        """The newest version of each key. A key that was deleted last has none."""
        ends = np.append(self.starts[1:], True) if len(self) else np.ones(0, np.bool_)
        found = self if ends.all() else self.filter(ends)
        return found if found.values.null_count == 0 else found.filter(~_nulls(found.values))

    def filter(self, keep: npt.NDArray[np.bool_]) -> "RecordVersions":
        mask = pa.array(keep)
        return self._with(self.keys.filter(mask), self.values.filter(mask), self.sources[keep])

    def slice(self, start: int, end: int) -> "RecordVersions":
        size = end - start
        return self._with(self.keys.slice(start, size), self.values.slice(start, size), self.sources[start:end])

    def sorted(self) -> "RecordVersions":
        """The records by key. A key's versions keep their order."""
        order = pc.sort_indices(self.keys)  # stable
        return self._with(self.keys.take(order), self.values.take(order), self.sources[order.to_numpy()])

    def by_schema(self) -> Iterator[tuple[str, npt.NDArray[np.int64], pa.Array]]:
        """For each schema among the records: the schema, the positions of its records, and their values."""
        texts = list(dict.fromkeys(self.schemas))
        kinds = np.array([texts.index(text) for text in self.schemas], np.int64)[self.sources]
        for index, text in enumerate(texts):
            positions = np.flatnonzero(kinds == index)
            if len(positions):
                yield (
                    text,
                    positions,
                    self.values if len(positions) == len(self) else self.values.take(pa.array(positions)),
                )

    def decode(self, decode: Callable[[pa.Array, str], pa.Table]) -> pa.Table | None:
        """The records as columns, one row each, in this order; None if there are none.

        `decode`: values of one schema.
        """
        made = [(positions, decode(values, text)) for text, positions, values in self.by_schema()]
        if len(made) <= 1:
            return made[0][1] if made else None

        order = np.argsort(np.concatenate([positions for positions, _ in made]), kind="stable")
        return pa.concat_tables([table for _, table in made]).take(pa.array(order))

    def _with(self, keys: pa.Array, values: pa.Array, sources: npt.NDArray[np.int32]) -> "RecordVersions":
        return RecordVersions(keys, values, sources, self.schemas, self.path)


def concat_versions(parts: Sequence[RecordVersions]) -> RecordVersions:
    """The records of the parts, one part after the other. All parts have the same schemas."""
    first = parts[0]
    if len(parts) == 1:
        return first

    size = sum(part.values.nbytes + part.keys.nbytes for part in parts)
    kind = pa.large_binary() if size > _SIZE_MAX else pa.binary()
    keys = pa.concat_arrays([part.keys.cast(kind) for part in parts])
    values = pa.concat_arrays([part.values.cast(kind) for part in parts])
    return first._with(keys, values, np.concatenate([part.sources for part in parts]))


def merge_versions(base: Iterator[RecordVersions], log: RecordVersions) -> Iterator[RecordVersions]:
    """The base file's records with the log's among them, in order. All versions of a key are in one part.

    `base`: in file order. Memory: the log, and a part of the base file. From the first key on that reaches U+E000, all
    that is left of the base file is held: there the order in which Java writes may not be the order of the bytes.
    """
    at = 0
    for part in base:
        if _may_be_reordered(part.keys):
            rest = concat_versions([part, *base, log.slice(at, len(log))])
            yield rest.sorted()
            return

        end = at + _count_up_to(log.keys.slice(at), part.keys[-1]) if len(part) else at
        yield part if end == at else concat_versions([part, log.slice(at, end)]).sorted()
        at = end

    if at < len(log):
        yield log.slice(at, len(log))


def _count_up_to(keys: pa.Array, last: pa.Scalar) -> int:
    """How many of the sorted keys are not above `last`."""
    low, high, bound = 0, len(keys), last.as_py()
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() <= bound:
            low = middle + 1
        else:
            high = middle
    return low


def _may_be_reordered(keys: pa.Array) -> bool:
    return any(content.size and content.max() >= 0xEE for content in _contents(keys))


def _contents(keys: pa.Array) -> Iterator[npt.NDArray[np.uint8]]:
    for data, offsets, _ in key_buffers(keys, what="metadata table"):
        yield data[offsets[0] : offsets[-1]]


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_]:
    return values.is_null().to_numpy(zero_copy_only=False)
