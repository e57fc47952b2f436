"""Names of files and folders, as data. Parsing is exact, or it is nothing."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, Self, TypeAlias

HOODIE = ".hoodie"
PROPERTIES = ".hoodie/hoodie.properties"
PROPERTIES_BACKUP = ".hoodie/hoodie.properties.backup"
TEMP = ".hoodie/.temp"
HEARTBEATS = ".hoodie/.heartbeat"
METADATA_TABLE = ".hoodie/metadata"
PARTITION_METAFILE = ".hoodie_partition_metadata"
PARTITIONS_KEY = "__all_partitions__"
"""The key of the metadata table's list of partitions. The records beside it have the paths of partitions as keys."""

BASE_FILE_EXTENSIONS: Final = (".parquet", ".orc", ".hfile", ".lance")
"""As Apache Hudi tells a base file from a file of others, such as `my_notes_2024.txt`."""
BASE_FILE_PATTERN = (
    r"(?P<file_id>[^_/.\x00-\x1f][^_/\x00-\x1f]*)_(?P<write_token>[a-zA-Z0-9-]+)"
    rf"_(?P<requested>[0-9]+)(?P<extension>{'|'.join(map(re.escape, BASE_FILE_EXTENSIONS))})"
)
"""File ids of a partitioned record index hold the name of a data partition, whatever its letters are."""
LOG_FILE_PATTERN = (
    r"\.(?P<file_id>[^_/]+)_(?P<instant>[0-9]+)\.log\.(?P<version>0|[1-9][0-9]{0,9})"
    r"(?:_(?P<write_token>[0-9]+-[0-9]+-[0-9]+))?(?P<suffix>\.cdc)?"
)
_BASE_FILE, _LOG_FILE = re.compile(BASE_FILE_PATTERN), re.compile(LOG_FILE_PATTERN)

_ARCHIVE_FILE = re.compile(
    r"\.commits_\.archive\.(?P<number>0|[1-9][0-9]{0,9})(?:_(?P<write_token>[0-9]+-[0-9]+-[0-9]+))?"
)
_WRITE_TOKEN = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})")

_CDC = ".cdc"
_NAMES_KEPT: Final = 4096
"""Parsed names of small tables are kept, about 2 MB of them: each call of a table parses them several times."""

MarkerKind: TypeAlias = Literal["CREATE", "MERGE", "APPEND"]


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """The name of a base file, as data. `parse` and `format` are exact inverses.

    Spec: format/layout.md section 4.2.
    """

    file_id: str
    write_token: str
    requested: str
    extension: str

    @classmethod
    def parse(cls, name: str) -> "BaseFileName | None":
        """The parsed name, or None for any file that is not a base file."""
        return _base_file_name(name)

    def format(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.requested}{self.extension}"


@lru_cache(maxsize=_NAMES_KEPT)
def _base_file_name(name: str) -> BaseFileName | None:
    match = _BASE_FILE.fullmatch(name)
    return BaseFileName(match[1], match[2], match[3], match[4]) if match else None


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The name of a log file, as data. `parse` and `format` are exact inverses.

    `instant`: in table version 8 and later, the instant of the delta commit that wrote the file; before, the instant
    of the base file of its slice. `suffix`: `.cdc` or empty. Spec: format/layout.md section 4.3.
    """

    file_id: str
    instant: str
    version: int
    write_token: str | None
    suffix: str = ""

    @classmethod
    def parse(cls, name: str) -> "LogFileName | None":
        """The parsed name, or None for any file that is not a log file."""
        return _log_file_name(name)

    def format(self) -> str:
        token = f"_{self.write_token}" if self.write_token is not None else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{self.suffix}"

    @property
    def order(self) -> tuple[str, int, str, str]:
        """The sort key that gives the reading order within a file slice."""
        return self.instant, self.version, self.write_token or "", self.suffix

    @property
    def is_cdc(self) -> bool:
        """Whether the file holds only change data, which snapshot reads pass over."""
        return self.suffix == _CDC


@lru_cache(maxsize=_NAMES_KEPT)
def _log_file_name(name: str) -> LogFileName | None:
    match = _LOG_FILE.fullmatch(name)
    if match is None:
        return None
    return LogFileName(
        match["file_id"],
        match["instant"],
        int(match["version"]),
        match["write_token"],
        match["suffix"] or "",
    )


def folders_above(path: str) -> Iterator[str]:
    """The folders that a folder lies in, without the table's own. Example: of `a/b/c` these are `a/b` and `a`."""
    while path := path.rpartition("/")[0]:
        yield path


def nested_folders(new: Collection[str], others: Collection[str]) -> Iterator[tuple[str, str]]:
    """Pairs of folders, one of `new` and one of `new` or `others`, the second of which lies within the first."""
    known, made = {*new, *others}, set(new)
    if len({path.count("/") for path in known}) <= 1:
        return
    for path in sorted(known):
        yield from (
            (above, path) for above in folders_above(path) if above in known and not made.isdisjoint((path, above))
        )


def is_partition_metafile(path: str) -> bool:
    """Whether a file makes its folder a partition. Its name may end with that of a base format."""
    return path.rpartition("/")[2].startswith(PARTITION_METAFILE)


def group_named(name: str) -> str:
    """The file group's id in the name of a base file or log file. Of any other name: a text that is no id."""
    return name.removeprefix(".").partition("_")[0]


@dataclass(frozen=True, slots=True)
class ArchiveFileName:
    """The name of a file of archived instants of layout 1, a log file as well. Spec: format/timeline.md section 6."""

    number: int
    write_token: str | None

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """The parsed name, or None for any other file."""
        match = _ARCHIVE_FILE.fullmatch(name)
        return cls(int(match["number"]), match["write_token"]) if match else None

    def format(self) -> str:
        token = f"_{self.write_token}" if self.write_token is not None else ""
        return f".commits_.archive.{self.number}{token}"


@dataclass(frozen=True, slots=True)
class WriteToken:
    """The task and the attempt that wrote a file. `parse` and `format` are exact inverses.

    Spec: format/layout.md section 4.1.
    """

    partition_number: int
    stage: int
    attempt: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The parsed token, or None for other text, which writers without tasks may use."""
        match = _WRITE_TOKEN.fullmatch(text)
        return cls(int(match[1]), int(match[2]), int(match[3])) if match else None

    def format(self) -> str:
        return f"{self.partition_number}-{self.stage}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class MarkerName:
    """The path of a direct marker below its instant's marker folder. Spec: format/actions.md section 2."""

    data_path: str
    kind: MarkerKind

    @classmethod
    def parse(cls, path: str) -> Self | None:
        data_path, marker, kind = path.rpartition(".marker.")
        if not marker or kind not in ("CREATE", "MERGE", "APPEND"):
            return None
        return cls(data_path, kind)  # type: ignore[arg-type]  # one of the three, checked above

    def format(self) -> str:
        return f"{self.data_path}.marker.{self.kind}"


def join(folder: str, name: str) -> str:
    """The path of a file in a partition. The partition path of a table without partitions is empty."""
    return f"{folder}/{name}" if folder else name


def marker_folder(requested: str) -> str:
    return f"{TEMP}/{requested}"


def heartbeat_path(requested: str) -> str:
    return f"{HEARTBEATS}/{requested}"


def file_group_id(uuid_text: str, count: int) -> str:
    """The id of the `count`-th file group (from 0) that one writer opened under one UUID."""
    assert len(uuid_text) == 36
    return f"{uuid_text}-{count}"
