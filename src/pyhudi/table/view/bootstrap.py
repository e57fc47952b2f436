"""Finds the source files of a bootstrapped table: the files that its first base files take their columns from."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pyhudi.errors import CorruptFile, NotFound, Unsupported
from pyhudi.format.bootstrap.index import PARTITIONS_FILE, StoredSource, decode_partition, partition_key
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.names import BaseFileName, join
from pyhudi.options.read_options import SOURCE_FOLDER
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.storage.uris import LocalUri, MemoryUri, ObjectUri, OtherUri, parse_uri
from pyhudi.table.view.file_system_view import SourceFile
from pyhudi.table.view.stored_file import StoredFile

BOOTSTRAP_INSTANT: Final = "00000000000001"
"""The instant of base files that hold the meta fields only. Spec: format/bootstrap.md section 1."""


class BootstrapIndex:
    """The source file of each base file that a bootstrap wrote. Looks a partition up when it is first asked for.

    `folder`: where the source lay when the table was made. If it is not there, the table was moved. Then a folder of
    the same name beside the table is taken. `place`: where the source is, as the caller says; None: he does not.
    Requests: two reads of the index for a partition, and once a look whether a source file is where the index says.
    """

    def __init__(self, storage: Storage, folder: str, place: str | None) -> None:
        self._storage, self._folder = storage, folder.rstrip("/")
        self._found: dict[str, Mapping[str, StoredSource]] = {}
        self._reader: HFileReader | None = None
        options = dict(storage.location.options)
        is_alike = place is not None and storage_kind(place) == storage_kind(storage.location.uri)
        self._place = None if place is None else parse_location(place, options if is_alike else None)

    def get(self, partition: str, base: BaseFileName) -> SourceFile:
        """The source of a base file. Raises: CorruptFile if the index has none; NotFound if the source is gone."""
        sources = self._found.get(partition)
        if sources is None:
            sources = self._found[partition] = self._look_up(partition)
        stored = sources.get(base.file_id)
        if stored is None:
            raise CorruptFile(
                PARTITIONS_FILE, 0, expected=f"the source file of {join(partition, base.format())}",
                found="none in the bootstrap index", hint="Put back the index file of the time of the bootstrap.",
            )  # fmt: skip
        return self._located(stored)

    def _look_up(self, partition: str) -> Mapping[str, StoredSource]:
        if self._reader is None:
            info = self._storage.head(PARTITIONS_FILE)
            if info is None:
                raise NotFound(
                    f"{self._storage.location.uri}: {SOURCE_FOLDER} says that the table was bootstrapped, and its base "
                    f"files of the instant {BOOTSTRAP_INSTANT} hold no columns of their own: expected the index of "
                    f"their source files, {PARTITIONS_FILE}; put it back from a copy"
                )
            source = StoredFile(self._storage, PARTITIONS_FILE)
            self._reader = HFileReader.by_ranges(source, info.size_bytes, path=PARTITIONS_FILE)
        (value,) = self._reader.get([partition_key(partition)])
        return {} if value is None else decode_partition(value, path=PARTITIONS_FILE)

    def _located(self, stored: StoredSource) -> SourceFile:
        within = _within(self._folder, stored.uri)
        if within is None:  # a source outside of the folder lies where the index says
            folder, _, name = stored.uri.rpartition("/")
            return SourceFile(self._at(folder), name, max(0, stored.size_bytes))
        if self._place is None:
            self._place = self._find_place(within)
        return SourceFile(self._place, within, max(0, stored.size_bytes))

    def _find_place(self, within: str) -> StorageLocation:
        """The folder that has the source. `within`: a source file below it."""
        table = self._storage.location.uri.rstrip("/")
        beside = join(table.rpartition("/")[0], self._folder.rpartition("/")[2])
        places = [self._at(self._folder), self._at(beside)]
        for place in places:
            if open_storage(place).head(within) is not None:
                return place
        looked_in = " and ".join(f"'{place.uri}'" for place in dict.fromkeys(places))
        raise NotFound(
            f"{table}: the table was bootstrapped from '{self._folder}', and its rows are there: expected the file "
            f"'{within}' in {looked_in}, found none; say where the folder is now: "
            f"HudiTable.open(path, options={{'{SOURCE_FOLDER}': '...'}})"
        )

    def _at(self, uri: str) -> StorageLocation:
        """A place of the kind of storage that the table is on, with its options.

        A table may not send a reader elsewhere: its options may be secrets, and its text may be a stranger's.
        Raises: Unsupported for a place on another kind of storage.
        """
        table = self._storage.location
        if storage_kind(uri) != storage_kind(table.uri):
            raise Unsupported(
                f"{table.uri}: the table was bootstrapped from '{uri}', on another kind of storage: allow it, if you "
                f"trust the table: HudiTable.open(path, options={{'{SOURCE_FOLDER}': '...'}}) with the place of its "
                "source folder"
            )
        return parse_location(uri, dict(table.options))


def _within(folder: str, uri: str) -> str | None:
    """The path of a file below a folder; None if it lies elsewhere.

    Seen: the folder is stored as `file:///a/b`, and its files as `file:/a/b/c` (0.15.0, 1.0.2, 1.2.0).
    """
    base, path = _bare(folder), _bare(uri)
    return path[len(base) + 1 :] if path.startswith(f"{base}/") else None


def storage_kind(uri: str) -> str:
    """The kind of storage; a place of a server that fsspec reaches counts with its host."""
    match parse_uri(uri):
        case LocalUri():
            return "file"
        case MemoryUri():
            return "memory"
        case ObjectUri(kind=kind):
            return kind
        case OtherUri(uri=whole):
            return "://".join(urlsplit(whole)[:2])


def _bare(uri: str) -> str:
    scheme, colon, rest = uri.partition(":")
    is_uri = colon and scheme.isalnum() and rest.startswith("/")
    return (rest if is_uri else uri).strip("/")
