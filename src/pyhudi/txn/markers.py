"""Markers: which files an instant may have begun to write. Spec: format/actions.md section 2."""

from pyhudi.errors import NotFound
from pyhudi.format.names import MarkerName, marker_folder
from pyhudi.storage.protocol import Storage

_TYPE_FILE = "MARKERS.type"


def read_markers(storage: Storage, requested: str) -> list[MarkerName] | None:
    """The markers of an instant, direct ones and those of a timeline server; None when it has no marker folder.

    Direct: one list request. Of a timeline server: one get a `MARKERS<n>` file more.
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


def remove_markers(storage: Storage, requested: str) -> None:
    storage.delete_prefix(marker_folder(requested))


def _lines(storage: Storage, path: str) -> list[str]:
    try:
        return [line for line in storage.get(path).decode().split("\n") if line]
    except NotFound:
        return []
