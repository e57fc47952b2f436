"""The archived timeline of layout 2: file names, manifests, and the columns of its Parquet files.

The folder holds files of archived instants, `<first>_<last>_<layer>.parquet`; manifests, each of which lists the files
of one state; and `_version_`, with the number of the current manifest.

Spec: format/timeline.md section 5. Seen: the times in a name are requested times of the first and the last row
(1.0.2, 1.2.0); the specification's text has completion times.
"""

import json
import re
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from pyhudi.errors import CorruptFile
from pyhudi.format.pretty_json import pretty_json

VERSION_FILE = "_version_"
LAYER_MAX = 9
"""The last layer: a file name has one digit for it."""

ROW_VERSION = 1

INSTANT_TIME, COMPLETION_TIME, ACTION, METADATA, PLAN, VERSION = (
    "instantTime", "completionTime", "action", "metadata", "plan", "version",
)  # fmt: skip

HISTORY_SCHEMA = pa.schema(
    [
        pa.field(INSTANT_TIME, pa.string()),
        pa.field(COMPLETION_TIME, pa.string()),
        pa.field(ACTION, pa.string()),
        pa.field(METADATA, pa.binary()),
        pa.field(PLAN, pa.binary()),
        pa.field(VERSION, pa.int32(), nullable=False),
    ]
)
"""A row an instant. `metadata`: the bytes of the completed file, null if it is empty. `plan`: the bytes of a service's
requested file."""

_FILE = re.compile(r"(?P<first>[0-9]+)_(?P<last>[0-9]+)_(?P<layer>[0-9])\.parquet")
_MANIFEST = re.compile(r"manifest_([0-9]+)")


@dataclass(frozen=True, slots=True)
class HistoryFileName:
    """The name of a file of archived instants, as data. `parse` and `format` are exact inverses."""

    first: str
    last: str
    layer: int

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """The parsed name, or None for any other file."""
        match = _FILE.fullmatch(name)
        return cls(match["first"], match["last"], int(match["layer"])) if match else None

    def format(self) -> str:
        assert 0 <= self.layer <= LAYER_MAX
        return f"{self.first}_{self.last}_{self.layer}.parquet"


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file of archived instants as a manifest lists it."""

    name: HistoryFileName
    size_bytes: int


def manifest_name(number: int) -> str:
    return f"manifest_{number}"


def manifest_number(name: str) -> int | None:
    """The number of a manifest, None for any other file."""
    match = _MANIFEST.fullmatch(name)
    return int(match[1]) if match else None


def parse_version(content: bytes) -> int | None:
    """The number in `_version_`; None if it holds no number, as after a torn write."""
    text = content.decode("ascii", "replace").strip()
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def encode_manifest(files: tuple[HistoryFile, ...]) -> bytes:
    """A manifest's JSON, in the order given."""
    entries = [{"fileName": file.name.format(), "fileLen": file.size_bytes} for file in files]
    return pretty_json({"files": entries}).encode()


def decode_manifest(content: bytes, *, path: str) -> tuple[HistoryFile, ...]:
    """The files that a manifest lists; an empty manifest lists none.

    Raises: CorruptFile for anything but a manifest.
    """
    if not content:
        return ()
    try:
        entries = json.loads(content.decode())["files"]
        found = [(HistoryFileName.parse(entry["fileName"]), int(entry["fileLen"])) for entry in entries]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise CorruptFile(path, 0, expected="a manifest of archived instants", found=said) from error

    files = []
    for name, size_bytes in found:
        if name is None:
            raise CorruptFile(
                path, 0, expected="names <first>_<last>_<layer>.parquet", found=content[:200].decode("utf-8", "replace")
            )
        files.append(HistoryFile(name, size_bytes))

    return tuple(files)
