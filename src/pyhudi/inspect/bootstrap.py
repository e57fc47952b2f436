"""The index of a bootstrapped table as rows: which source file each of its first base files has."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pyhudi.api.table import HudiTable
from pyhudi.errors import Invalid, NotFound
from pyhudi.format.bootstrap.index import PARTITIONS_FILE, decode_partition, partition_key
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.options.read_options import SOURCE_FOLDER
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.stored_file import StoredFile

_KEY_START = partition_key("")


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """A base file of a bootstrap and its source. `source_partition`: its folder below `source_folder`."""

    partition: str
    file_id: str
    source_folder: str
    source_partition: str
    source_file: str


def read_bootstrap_partitions(table: HudiTable) -> list[str]:
    """The partitions in the index, sorted. Raises: NotFound for a table that was not bootstrapped."""
    reader = _open(table)
    cells = reader.scan_arrow()
    keys = (bytes(key.as_py()) for key in cells.column(0))
    return sorted(key[len(_KEY_START) :].decode() for key in keys)


def read_source_mappings(table: HudiTable, partition: str, file_ids: Collection[str]) -> Iterator[SourceMapping]:
    """The sources of base files: of one partition, or of all for an empty text; of these file ids, or of all.

    Raises: NotFound for a table that was not bootstrapped, and for a partition that the index does not have.
    """
    if file_ids and not partition:
        raise Invalid("file_ids: expected their partition_path, too, found none")
    known = read_bootstrap_partitions(table)
    if partition and partition not in known:
        raise NotFound(f"partition '{partition}': expected one of the bootstrap index, which has {len(known):,}")
    reader, folder = _open(table), table.properties.get(SOURCE_FOLDER, "")
    chosen = [partition] if partition else known
    for one, value in zip(chosen, reader.get([partition_key(name) for name in chosen]), strict=True):
        assert value is not None
        for file_id, source in sorted(decode_partition(value, path=PARTITIONS_FILE).items()):
            if not file_ids or file_id in file_ids:
                within = _within(source.uri, folder)
                yield SourceMapping(one, file_id, folder, within.rpartition("/")[0], source.uri)


def _within(uri: str, folder: str) -> str:
    """The path of a source below the folder; the whole URI where it lies elsewhere."""
    path, base = (text.removeprefix("file:").lstrip("/") for text in (uri, folder.rstrip("/")))
    return path.removeprefix(f"{base}/")


def _open(table: HudiTable) -> HFileReader:
    storage: Storage = table._access.storage
    info = storage.head(PARTITIONS_FILE)
    if info is None:
        raise NotFound(f"{table.path}: expected the index of a bootstrapped table, {PARTITIONS_FILE}, found none")
    return HFileReader.by_ranges(StoredFile(storage, PARTITIONS_FILE), info.size_bytes, path=PARTITIONS_FILE)
