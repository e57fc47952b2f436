"""What a bootstrap writes: a pure plan over what the source files say of themselves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.bootstrap.writing import IndexedFile
from pyhudi.services.bootstrap.settings import BootstrapSettings
from pyhudi.services.bootstrap.source import ListedSource, SourceFacts
from pyhudi.write.handles.skeleton import SkeletonFile, SkeletonTask

_TASK_ROWS, _TASK_FILES = 2_000_000, 32
"""What one task takes, if it takes more than one file: the time to start it should not count."""


@dataclass(frozen=True, slots=True)
class PlacedSource:
    """A source file that has rows, and the partition of the table that these get."""

    file: ListedSource
    rows: int
    partition: str


@dataclass(frozen=True, slots=True)
class BootstrapPlan:
    """`tasks`: write the skeletons. `indexed`: all files that have a skeleton, sorted by partition and file id.

    `full`: the files whose rows are written, sorted by path.
    """

    tasks: tuple[SkeletonTask, ...]
    indexed: tuple[IndexedFile, ...]
    full: tuple[PlacedSource, ...]

    @property
    def skeleton_count(self) -> int:
        return len(self.indexed)


def common_schema(facts: Sequence[SourceFacts]) -> pa.Schema:
    """The columns of all source files, in the order of the first. Raises: Invalid where a file has others.

    Nullability does not count: in the table every column may be null.
    """
    first = facts[0]
    types = {field.name: field.type for field in first.schema}
    for one in facts[1:]:
        own = {field.name: field.type for field in one.schema}
        if own == types:
            continue
        for name in dict.fromkeys((*types, *own)):
            if own.get(name) != types.get(name):
                raise Invalid(
                    f"source files '{first.file.path}' and '{one.file.path}': expected the same columns in each, "
                    f"found '{name}' as {types.get(name, 'no column')} and as {own.get(name, 'no column')}; rewrite "
                    "the files to one schema, or read them and write their rows to a new table"
                )
    return pa.schema([pa.field(field.name, field.type) for field in first.schema])


def plan_bootstrap(
    files: Sequence[PlacedSource], settings: BootstrapSettings, *, new_uuid: Callable[[], str], uri_of: str
) -> BootstrapPlan:
    """Choose a mode for each file, and give file ids and tasks. `uri_of`: the source, as the index names its files.

    Seen: the file id of a skeleton is a bare UUID (0.15.0, 1.0.2, 1.2.0).
    """
    ordered = sorted(files, key=lambda one: one.file.path)
    modes = settings.modes_of([one.file.folder for one in ordered])
    full = tuple(one for one, mode in zip(ordered, modes, strict=True) if mode == "FULL_RECORD")
    rest = [one for one, mode in zip(ordered, modes, strict=True) if mode == "METADATA_ONLY"]
    ids = {one.file.path: new_uuid() for one in rest}

    tasks: list[SkeletonTask] = []
    for share in _shares(rest):
        skeletons = tuple(SkeletonFile(one.partition, ids[one.file.path], one.file.path) for one in share)
        tasks.append(SkeletonTask(len(tasks), skeletons))

    indexed = [
        IndexedFile(
            one.partition, ids[one.file.path], one.file.folder, f"{uri_of}/{one.file.path}", one.file.size_bytes,
            one.file.modified_ms,
        )
        for one in rest
    ]  # fmt: skip
    indexed.sort(key=lambda one: (one.partition.encode(), one.file_id))
    return BootstrapPlan(tuple(tasks), tuple(indexed), full)


def _shares(files: Sequence[PlacedSource]) -> list[list[PlacedSource]]:
    """The files of each task: neighbours."""
    shares: list[list[PlacedSource]] = []
    rows = 0
    for one in files:
        if not shares or rows + one.rows > _TASK_ROWS or len(shares[-1]) == _TASK_FILES:
            shares.append([])
            rows = 0
        shares[-1].append(one)
        rows += one.rows
    return shares
