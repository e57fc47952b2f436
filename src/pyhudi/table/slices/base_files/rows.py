"""The rows of a base file as the table's columns of today name them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from pyhudi.format.keys.record_keys import KeySpec, partition_values
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.keyed import KeyedFile
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.slices.base_files.stitched import FilledFile, StitchedFile
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.view.file_system_view import SourceFile

_UNTOLD: Final = pa.schema([])


@dataclass(frozen=True, slots=True)
class AsWritten:
    """How files and log blocks may differ from the table's columns of today. Picklable.

    `evolution`: columns had other names in older files; None if none had. `paths`: how partition paths tell the texts
    of partition columns that files lack; None if every file has them. `drops_columns`: any file or log block may lack
    them; if off, only source files of a bootstrap do. `keys`: how to compute record keys, which files do not store;
    None if they do. `kinds`: the table's columns, whose types such keys are spelled of.
    """

    evolution: Evolution | None = None
    paths: KeySpec | None = None
    drops_columns: bool = False
    keys: KeySpec | None = None
    kinds: pa.Schema = _UNTOLD

    @property
    def is_today(self) -> bool:
        """Whether all files but those with a source have the columns of today, as far as names tell."""
        return self.evolution is None and not self.drops_columns

    def texts_of(self, partition: str, stored: Sequence[str], *, has_source: bool = False) -> Mapping[str, str | None]:
        """The texts of partition columns for rows of a partition that may lack their values.

        `stored`: the columns that the rows have. Seen: a table that drops partition columns has base files with the
        columns, null in all rows (1.2.0, copy-on-write, after a delete).
        """
        if self.paths is None or not (has_source or self.drops_columns):
            return {}
        # The folders of a source are spelled as Spark and Hive do, whatever the table does with its own.
        paths = replace(self.paths, is_hive_style=True, is_url_encoded=True) if has_source else self.paths
        told = partition_values(partition, paths)
        return {n: text for n, text in told.items() if self.drops_columns or n not in stored}


TODAY = AsWritten()


def open_rows(
    storage: Storage, path: str, source: SourceFile | None = None, as_written: AsWritten = TODAY
) -> OpenBaseFile:
    """A base file with all columns of its rows: `source` holds the columns of a bootstrapped file, and the partition
    path tells columns that the file lacks.

    Raises: as `open_base_file`; CorruptFile where a bootstrapped file and its source differ in their rows, or the
    source has another size than at the time of the bootstrap.
    """
    file = open_base_file(storage, path)
    try:
        if source is not None:
            other = open_base_file(
                open_storage(source.location), source.path, format_of=path, size_bytes=source.size_bytes or None
            )
            try:
                file = StitchedFile(file, other)
            except BaseException:
                other.close()
                raise
        told = as_written.texts_of(path.rpartition("/")[0], file.schema.names, has_source=source is not None)
        file = FilledFile(file, told) if told else file
        return file if as_written.keys is None else KeyedFile(file, as_written.keys, as_written.kinds)
    except BaseException:
        file.close()
        raise


def read_stored_batches(
    storage: Storage,
    path: str,
    columns: Sequence[str],
    *,
    use_threads: bool,
    choose: Callable[[OpenBaseFile], Sequence[int]] | None = None,
    source: SourceFile | None = None,
    as_written: AsWritten = TODAY,
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file in order, as they are stored, with those of the columns that the file has.

    `choose`: picks the row groups to read from the open file. None: all are read. Of a file whose columns had other
    names, all row groups are read. `source`, `as_written`: as for `open_rows`.
    Memory: one row group of these columns. Raises: CorruptFile.
    """
    evolution = as_written.evolution
    then = None if evolution is None else evolution.of_file(path, columns)
    with closing(open_rows(storage, path, source, as_written)) as file:
        asked = columns if then is None else then.stored
        present = [name for name in asked if name in file.schema.names]
        groups = choose(file) if choose is not None and then is None else None
        for batch in file.batches(present, groups=groups, use_threads=use_threads):
            yield batch if then is None else then.named(batch)
