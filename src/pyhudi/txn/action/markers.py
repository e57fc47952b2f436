"""Markers: which files an instant may have begun to write. Spec: format/actions.md section 2."""

from collections.abc import Iterable

from pyhudi.errors import NotFound
from pyhudi.format.log.delete import no_deletes
from pyhudi.format.log.writer import encode_delete_block
from pyhudi.format.names import MarkerName, marker_folder
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.snapshot import read_config
from pyhudi.txn.undo.data_files import only_data_files
from pyhudi.versions import LogContent

_TYPE_FILE = "MARKERS.type"


def read_markers(storage: Storage, requested: str) -> list[MarkerName] | None:
    """The markers of an instant, sorted by data file; None when the instant has no marker folder.

    A direct marker is a file of its own. A timeline server writes its markers as lines of `MARKERS<n>` files instead.
    Requests: one list; with a timeline server, also one get per `MARKERS<n>` file.
    """
    folder = marker_folder(requested)
    files = [file.path.removeprefix(f"{folder}/") for file in storage.list(folder, recursive=True)]
    if not files:
        return None

    names = [name for name in files if not name.startswith("MARKERS")]
    if _TYPE_FILE in files:
        for name in files:
            if name.startswith("MARKERS") and name != _TYPE_FILE:
                names += _lines(storage, f"{folder}/{name}")
    return sorted((m for m in map(MarkerName.parse, names) if m is not None), key=lambda m: m.data_path)


def empty_log(requested: str, content: LogContent = LogContent.AVRO) -> bytes:
    """The bytes of a log file with one block and no records, written by the action of this time."""
    return encode_delete_block(no_deletes(), instant_time=requested, form=content)


def remove_lost_files(storage: Storage, requested: str, markers: Iterable[MarkerName]) -> None:
    """Delete the files of lost task attempts, when their action is about to complete.

    The markers are deleted before the files: an attempt that still runs ends when its marker is gone, before it shows
    its file. A log file named after its file slice has an APPEND marker. Such a log is emptied before its marker goes,
    because without the marker no rollback would void its blocks.
    """
    lost = list(markers)
    data = set(only_data_files((marker.data_path for marker in lost), named_by=f"a marker of '{requested}'"))

    logs = [marker.data_path for marker in lost if marker.kind == "APPEND" and marker.data_path in data]
    if logs:
        content = read_config(storage).version.log_content
        for path in logs:
            storage.put(path, empty_log(requested, content))

    storage.delete_many(f"{marker_folder(requested)}/{marker.format()}" for marker in lost)
    storage.delete_many(marker.data_path for marker in lost if marker.data_path in data)


def remove_markers(storage: Storage, requested: str) -> None:
    storage.delete_prefix(marker_folder(requested))


def _lines(storage: Storage, path: str) -> list[str]:
    try:
        return [line for line in storage.get(path).decode().split("\n") if line]
    except NotFound:
        return []
