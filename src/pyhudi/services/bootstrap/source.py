"""The source of a bootstrap: the files that it holds, and what they say of themselves."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.keys.record_keys import DEFAULT_PARTITION, KeySpec, missing_keys, null_key_message, partition_paths
from pyhudi.format.names import HOODIE
from pyhudi.format.schema.arrow_types import canonical_arrow, refuse_names_alike
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.services.bootstrap.layout import path_texts
from pyhudi.storage.protocol import FileInfo, Storage
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.slices.base_files.stitched import filled
from pyhudi.table.slices.conform import conform_batch

EXTENSIONS: Final = (".parquet", ".orc")

_OTHER_TABLES: Final = {HOODIE: "Hudi", "_delta_log": "Delta"}
"""Folders of tables whose files are not all rows of today."""


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source file. `path`: below the source. `folder`: of the file, empty for the source's own folder."""

    path: str
    folder: str
    size_bytes: int
    modified_ms: int

    @classmethod
    def of(cls, info: FileInfo) -> "ListedSource":
        return cls(info.path, info.path.rpartition("/")[0], info.size_bytes, info.modified_ms)

    @property
    def extension(self) -> str:
        return self.path[self.path.rfind(".") :]


def list_source(storage: Storage) -> list[ListedSource]:
    """The data files of a source, sorted by path, all of one format. One recursive listing.

    Files and folders whose names begin with `_` or `.` are passed over, as Spark does; `_SUCCESS` is one. The folder of
    null values, `__HIVE_DEFAULT_PARTITION__`, is not: it holds rows.
    Raises: Invalid for a source without data files, with files of two formats or of another, and for the folder of a
    table of another kind.
    """
    uri = storage.location.uri
    found: list[ListedSource] = []
    for info in storage.list("", recursive=True):
        parts = info.path.split("/")
        for part in parts[:-1]:
            if part in _OTHER_TABLES:
                raise Invalid(
                    f"{uri}: expected a folder of data files, found '{part}': it holds a {_OTHER_TABLES[part]} table, "
                    "whose files are not all rows of today; read it, and write its rows to a new table"
                )
        if _is_passed_over(parts[-1]) or any(
            _is_passed_over(part) and part != DEFAULT_PARTITION for part in parts[:-1]
        ):
            continue
        found.append(ListedSource.of(info))

    if not found:
        raise Invalid(f"{uri}: expected a folder with Parquet or ORC files to bootstrap from, found no data file")
    other = next((file for file in found if file.extension not in EXTENSIONS), None)
    if other is not None:
        raise Invalid(
            f"{uri}: '{other.path}': expected files whose names end in {' or '.join(EXTENSIONS)}; move it elsewhere, "
            "or begin its name with '_'"
        )
    first = found[0]
    mixed = next((file for file in found if file.extension != first.extension), None)
    if mixed is not None:
        raise Invalid(
            f"{uri}: expected files of one format, found '{first.path}' and '{mixed.path}'; bootstrap them apart"
        )
    return found


def _is_passed_over(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """What source files are held against. Picklable.

    `keys`: how the table spells keys and paths. `ordering`: its ordering columns.
    """

    storage: Storage
    keys: KeySpec
    ordering: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a source file says of itself. `schema`: in the types in which tables keep them."""

    file: ListedSource
    rows: int
    schema: pa.Schema


def inspect_source(check: SourceCheck, file: ListedSource, partition: str) -> SourceFacts:
    """The facts of a source file that can be a part of the table. `partition`: where its rows will lie.

    Reads the footer; the key columns only where the footer does not rule out nulls and empty texts; the partition
    columns where the file has them.
    Raises: CorruptFile for a file that is not of its format; Invalid for one that lacks key or ordering columns, has
    meta fields, or rows with null keys or of other partitions.
    """
    uri = f"{check.storage.location.uri}/{file.path}"
    with closing(open_base_file(check.storage, file.path)) as opened:
        names = opened.schema.names
        meta = next((name for name in names if name in META_FIELDS), None)
        if meta is not None:
            raise Invalid(
                f"{uri}: expected rows without meta fields, found the column '{meta}': it is a file of a Hudi table; "
                "open that table, or drop the columns that begin with '_hoodie_'"
            )
        for what, columns in (("record key", check.keys.record_key), ("ordering", check.ordering)):
            for name in columns:
                if name not in names:
                    raise Invalid(f"{uri}: {what} column '{name}': expected in each source file, found {_told(names)}")
        schema = canonical_arrow(opened.schema)
        refuse_names_alike(schema)
        if opened.row_count:
            _refuse_missing_keys(uri, opened, check.keys)
            _refuse_other_partitions(uri, opened, check.keys, partition)
        return SourceFacts(file, opened.row_count, schema)


def _told(names: Sequence[str]) -> str:
    return ", ".join(names) or "no column"


def _refuse_missing_keys(uri: str, opened: OpenBaseFile, keys: KeySpec) -> None:
    if any(_is_surely_filled(opened, name) for name in keys.record_key):
        return
    count = 0
    for batch in opened.batches(keys.key_columns):
        count += pc.sum(missing_keys(pa.Table.from_batches([batch]), keys)).as_py() or 0
    if count:
        raise Invalid(f"{uri}: {null_key_message(keys.record_key, count, 'nothing was written')}")


def _is_surely_filled(opened: OpenBaseFile, name: str) -> bool:
    """Whether the footer rules out nulls and empty texts of a column: then no key of several columns is empty."""
    for group in range(len(opened.group_rows)):
        told = opened.chunk(group, name)
        if told is None or told.null_count != 0 or told.bounds is None or told.bounds[0] in ("", b""):
            return False
    return True


def _refuse_other_partitions(uri: str, opened: OpenBaseFile, keys: KeySpec, partition: str) -> None:
    """Rows lie in the partition that their partition columns name, or an upsert would not find them."""
    stored = [name for name in keys.partition_by if name in opened.schema.names]
    if not stored:
        return
    told = {name: text for name, text in path_texts(partition, keys).items() if name not in stored}
    for batch in opened.batches(stored):
        typed = conform_batch(batch, canonical_arrow(batch.schema), path=uri)
        rows = pa.Table.from_batches([filled(typed, keys.partition_by, told)])
        paths = partition_paths(rows, keys).combine_chunks().dictionary.to_pylist()
        other = next((path for path in paths if path != partition), None)
        if other is not None:
            raise Invalid(
                f"{uri}: expected rows of the partition '{partition}', as the folder says, found a row whose "
                f"{', '.join(stored)} name the partition '{other}'; move the file, or partition by other columns"
            )
