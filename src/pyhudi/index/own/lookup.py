"""Looking keys up in an index of one's own, and checking what it says."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Conflict, Invalid, Unavailable
from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.index.hits import Hits, KeyBounds, hits_of_rows
from pyhudi.index.own.known import Known
from pyhudi.index.own.opening import OpenIndex, opened
from pyhudi.index.own.protocol import KEYS, LOCATIONS, IndexOf, RegisteredIndex
from pyhudi.index.record_index import group_numbers
from pyhudi.metadata.kinds.record_index import located_groups
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.history import NoHistory

KEYS_TOGETHER = 1_000_000
"""So many keys are asked for in one call."""


class IndexMoved(Conflict):
    """Another writer told the index of its commit while keys were looked up: the answers may be of two states."""


@dataclass(frozen=True, slots=True)
class OwnLookup:
    """Looks keys up in an index of the user's. Can be pickled where its factory can.

    `timeline`: of the snapshot, by which the index was told what it had missed; an index of another state does not
    count. `bring`: as of `RecordIndex`. Row positions are not known.
    Memory: the distinct keys and their locations.
    """

    registered: RegisteredIndex
    table: IndexOf
    timeline: Timeline
    bring: Callable[[Mapping[str, Collection[str]]], None] | None = None

    @classmethod
    def of(cls, registered: RegisteredIndex, snapshot: Snapshot) -> Self:
        timeline = replace(snapshot.timeline, history=NoHistory())
        return cls(registered, IndexOf(snapshot.storage.location.uri, snapshot.config.name), timeline)

    @property
    def is_global(self) -> bool:
        return self.registered.is_global

    @property
    def prunes(self) -> bool:
        return True

    @property
    def is_exact(self) -> bool:
        return True

    def locate(
        self, storage: Storage, keys: Mapping[str, pa.Array], slices: Sequence[FileSlice], executor: Executor
    ) -> dict[str, Hits]:
        if not keys:
            return {}
        located = self.find(keys)
        if self.bring is not None:
            self.bring(located_groups([located.rename_columns(["key", "asked", "partition", "file_id", "instant"])]))

        groups = one_array(group_numbers(located.column("partition_path"), located.column("file_id"), slices))
        self._refuse_places(located, groups)
        known = _by_asked(located, groups)
        return {path: _hits(of, known.get(path)) for path, of in keys.items()}

    def _refuse_places(self, located: pa.Table, groups: pa.Array) -> None:
        """Raises: Invalid for a location that the table cannot have.

        The index was told of every commit, and is of that state still. So it names the wrong place: the key's row lies
        elsewhere, and would stay there beside the new one.
        """
        is_there = pc.and_(groups.is_valid(), self._committed(located.column("instant")))
        if (at := pc.index(is_there, False).as_py()) < 0:
            return
        wrong = located.slice(at, 1).to_pylist()[0]
        raise Invalid(
            f"index '{self.registered.name}' of table '{self.table.name}': expected places of the table as it is now, "
            f"found file group '{wrong['file_id']}' of partition '{wrong['partition_path']}', by commit "
            f"'{wrong['instant']}', for record key '{wrong['record_key']}'; mend the index, and let it forget "
            "everything, its state too: the next write builds it anew"
        )

    def candidates(
        self, storage: Storage, bounds: Mapping[str, KeyBounds], slices: Sequence[FileSlice], executor: Executor
    ) -> list[int]:
        return list(range(len(slices)))

    def find(self, keys: Mapping[str, pa.Array]) -> pa.Table:
        """The locations of keys, with the partition path `asked` beside each key. `keys`: by partition path.

        Raises: IndexMoved where the index is of another state afterwards; Invalid for an answer that is none.
        """
        asked = pa.concat_tables(
            pa.table([own := of.unique(), pa.repeat(pa.scalar(path, pa.string()), len(own))], schema=KEYS)
            for path, of in keys.items()
        )
        with opened(self.registered, self.table) as index:
            parts = [
                self._find(index, asked.slice(start, KEYS_TOGETHER)) for start in range(0, len(asked), KEYS_TOGETHER)
            ]
            self._refuse_other_state(index.state())
        return pa.concat_tables(parts) if parts else _ANSWER.empty_table()

    def _find(self, index: OpenIndex, asked: pa.Table) -> pa.Table:
        asked = asked.combine_chunks()
        found = self._checked(index.locate(asked))
        if not self.is_global:
            found = found.filter(pc.is_valid(_pair_at(found, asked)))
            return found.add_column(1, "asked", found.column("partition_path")).cast(_ANSWER)

        # A key may be asked for in several partitions.
        by_key = asked.rename_columns(["record_key", "asked"])
        joined = by_key.join(found, "record_key", join_type="inner")
        return joined.select(_ANSWER.names).cast(_ANSWER)

    def _checked(self, answer: object) -> pa.Table:
        who = f"index '{self.registered.name}'"
        if not isinstance(answer, pa.Table):
            raise Invalid(
                f"{who}: expected an Arrow table of {', '.join(LOCATIONS.names)}, found {type(answer).__name__}"
            )
        found: pa.Table = answer
        for name in LOCATIONS.names:
            if (times := found.column_names.count(name)) != 1:
                times_found = f"'{name}' {times} times" if times else f"no '{name}'"
                raise Invalid(f"{who}: expected the columns {', '.join(LOCATIONS.names)}, found {times_found}")
        try:
            found = found.select(LOCATIONS.names).cast(LOCATIONS)
        except pa.ArrowException as error:
            raise Invalid(f"{who}: expected texts as locations: {error}") from error
        nulls = [name for name in LOCATIONS.names if found.column(name).null_count]
        if nulls:
            raise Invalid(f"{who}: expected whole locations, found one whose {nulls[0]} is null")
        return found

    def refuse_moved(self) -> None:
        """Raises: as `find` for an index that is of another state by now."""
        with opened(self.registered, self.table) as index:
            self._refuse_other_state(index.state())

    def _refuse_other_state(self, state: str | None) -> None:
        now = Known.parse(state)
        if now is not None and Known.of(self.timeline).is_of_same_writes(now):
            return
        who = f"index '{self.registered.name}' of table '{self.table.name}'"
        if now is None:
            raise Unavailable(
                f"{who}: it was true to the table when the write began, and knows nothing now; where tasks of Spark "
                "look keys up, they must reach the storage that this process reaches"
            )
        raise IndexMoved(
            f"{who}: it is of another state than when the write began, as another writer told it of a commit while "
            "keys were looked up; run the write again"
        )

    def _committed(self, instants: pa.ChunkedArray) -> pa.ChunkedArray:
        known = [one for one in pc.unique(instants).to_pylist() if self.timeline.is_committed(one)]
        return pc.is_in(instants, value_set=pa.array(known, pa.string()))


_ANSWER = pa.schema([LOCATIONS.field(0), pa.field("asked", pa.string()), *(LOCATIONS.field(n) for n in (1, 2, 3))])


def _pair_at(found: pa.Table, asked: pa.Table) -> pa.ChunkedArray:
    """For each location, the position of its key and partition among those that were asked for; null: it was not."""
    names = [
        one_array(pc.binary_join_element_wise(of.column("partition_path"), of.column("record_key"), "\0"))
        for of in (found, asked)
    ]
    return pc.index_in(names[0], value_set=names[1])


def _by_asked(located: pa.Table, groups: pa.Array) -> dict[str, tuple[pa.Array, np.ndarray]]:
    """The known keys, and the number of each one's slice, by the partition path in which they were asked for."""
    paths = one_array(located.column("asked")).dictionary_encode()
    codes, keys, numbers = np.asarray(paths.indices), one_array(located.column("record_key")), np.asarray(groups)
    found: dict[str, tuple[pa.Array, np.ndarray]] = {}
    for code, path in enumerate(paths.dictionary.to_pylist()):
        at = np.flatnonzero(codes == code)
        found[path] = keys.take(pa.array(at)), numbers[at].astype(np.int32)
    return found


def _hits(keys: pa.Array, known: tuple[pa.Array, np.ndarray] | None) -> Hits:
    """Hits of the input's keys. A key with several locations has a hit in each."""
    if known is None:
        nothing = np.zeros(0, np.int64)
        return Hits(nothing, nothing.astype(np.int32), nothing)
    distinct, (found, groups) = keys.dictionary_encode(), known
    of_key = np.asarray(pc.index_in(found, value_set=distinct.dictionary), dtype=np.int64)
    unknown = np.full(len(groups), -1, dtype=np.int64)
    return hits_of_rows(np.asarray(distinct.indices), len(distinct.dictionary), of_key, groups, unknown)
