"""Reading and replacing `hoodie.properties` without ever losing it."""

from collections.abc import Mapping
from typing import Final

from pyhudi.errors import CorruptFile, NotFound, Unavailable
from pyhudi.format.names import HOODIE, PROPERTIES, PROPERTIES_BACKUP
from pyhudi.format.properties import CHECKSUM, decode_table_properties, encode_table_properties
from pyhudi.storage.protocol import Storage

PROPERTIES_BYTES_MAX: Final = 16 << 20
"""The file is read whole, up to this size. A table's properties take a few kilobytes."""


def read_table_properties(storage: Storage) -> dict[str, str]:
    """The table's properties. Read from the backup while another writer replaces the file, or after a torn write.

    Raises: NotFound when neither exists: the path is no table. CorruptFile when neither is whole.
    """
    torn: CorruptFile | None = None
    doubtful: dict[str, str] | None = None
    for path in (PROPERTIES, PROPERTIES_BACKUP, PROPERTIES):
        try:
            content = _read(storage, path)
            properties = decode_table_properties(content, path=_shown(storage, path))
        except NotFound:
            continue
        except CorruptFile as error:
            torn = torn or error
            continue
        if _is_surely_whole(content, properties):
            return properties
        doubtful = doubtful or properties

    if doubtful is not None:
        return doubtful
    if torn is not None:
        raise _with_backup_told(torn, storage)
    rest = next(storage.list(HOODIE, recursive=True), None)
    hint = (
        "check the path, or create a table with HudiTable.create"
        if rest is None
        else f"'{rest.path}' is there: put the properties back"
    )
    raise NotFound(f"{storage.location.uri}: expected a Hudi table, found no '{PROPERTIES}'; {hint}")


def _with_backup_told(torn: CorruptFile, storage: Storage) -> CorruptFile:
    """The error. If there is a backup, its hint says that the backup is damaged too: else it would have been read."""
    if torn.path != _shown(storage, PROPERTIES) or storage.head(PROPERTIES_BACKUP) is None:
        return torn
    hint = f"{torn.hint} Its backup, '{PROPERTIES_BACKUP}', is damaged too."
    return CorruptFile(torn.path, torn.offset, expected=torn.expected, found=torn.found, hint=hint)


def replace_table_properties(storage: Storage, properties: Mapping[str, str], *, epoch_ms: int) -> None:
    """Replace the table's properties. At any step, a reader or a crash finds the old or the new properties whole.

    Steps: recover a backup that a dead writer left; copy the file to the backup; write the new file;
    read it back; delete the backup. Spec: format/layout.md section 2.2.
    """
    content = encode_table_properties(properties, epoch_ms=epoch_ms, is_update=True)
    recover_table_properties(storage)
    storage.put(PROPERTIES_BACKUP, _read(storage, PROPERTIES))
    storage.put(PROPERTIES, content)
    if _read(storage, PROPERTIES) != content:
        raise Unavailable(
            f"{_shown(storage, PROPERTIES)}: expected the {len(content):,} bytes just written, found others; "
            f"the properties from before are in '{PROPERTIES_BACKUP}'"
        )
    storage.delete(PROPERTIES_BACKUP)


def recover_table_properties(storage: Storage) -> None:
    """Finish a replacement of the properties whose writer died. Changes nothing if there is none."""
    try:
        backup = _read(storage, PROPERTIES_BACKUP)
    except NotFound:
        return

    try:
        content = _read(storage, PROPERTIES)
        properties = decode_table_properties(content, path=_shown(storage, PROPERTIES))
        is_whole = _is_surely_whole(content, properties) or not _is_good(backup)
    except (NotFound, CorruptFile):
        decode_table_properties(backup, path=_shown(storage, PROPERTIES_BACKUP))
        is_whole = False

    if not is_whole:
        storage.put(PROPERTIES, backup)
    storage.delete(PROPERTIES_BACKUP)


def _read(storage: Storage, path: str) -> bytes:
    content = storage.get(path, 0, PROPERTIES_BYTES_MAX + 1)
    if len(content) > PROPERTIES_BYTES_MAX:
        expected, found = f"at most {PROPERTIES_BYTES_MAX:,} bytes of properties", "more"
        raise CorruptFile(_shown(storage, path), PROPERTIES_BYTES_MAX, expected=expected, found=found)
    return content


def _is_good(backup: bytes) -> bool:
    try:
        return _is_surely_whole(backup, decode_table_properties(backup, path=PROPERTIES_BACKUP))
    except CorruptFile:
        return False


def _is_surely_whole(content: bytes, properties: Mapping[str, str]) -> bool:
    """Whether nothing hints at a torn write: the file has a checksum, and its last line is ended.

    Old files have no checksum. The checksum covers the table's name only, so a file that was cut short may pass it.
    """
    return CHECKSUM in properties and content.endswith((b"\n", b"\r"))


def _shown(storage: Storage, path: str) -> str:
    return f"{storage.location.uri.rstrip('/')}/{path}"
