"""Reading and replacing `hoodie.properties` without ever losing it."""

from collections.abc import Mapping

from pyhudi.errors import CorruptFile, NotFound, Unavailable
from pyhudi.format.names import PROPERTIES, PROPERTIES_BACKUP
from pyhudi.format.properties import decode_table_properties, encode_table_properties
from pyhudi.storage.protocol import Storage


def read_table_properties(storage: Storage) -> dict[str, str]:
    """The table's properties: the file itself or, while another writer replaces it or after a torn write, its backup.

    Raises: NotFound when neither exists: the path is no table. CorruptFile when neither is whole.
    """
    torn: CorruptFile | None = None
    for path in (PROPERTIES, PROPERTIES_BACKUP, PROPERTIES):
        try:
            return decode_table_properties(storage.get(path), path=_shown(storage, path))
        except NotFound:
            continue
        except CorruptFile as error:
            torn = torn or error
    if torn is not None:
        raise torn
    raise NotFound(
        f"{storage.location.uri}: expected a Hudi table, found no '{PROPERTIES}'; create one with HudiTable.create"
    )


def replace_table_properties(storage: Storage, properties: Mapping[str, str], *, epoch_ms: int) -> None:
    """Replace the table's properties; a reader or a crash at any step finds the old or the new ones whole.

    Steps: recover a backup that a dead writer left; copy the file to the backup; write the new file;
    read it back; delete the backup. Spec: format/layout.md section 2.2.
    """
    recover_table_properties(storage)
    storage.put(PROPERTIES_BACKUP, storage.get(PROPERTIES))
    content = encode_table_properties(properties, epoch_ms=epoch_ms, is_update=True)
    storage.put(PROPERTIES, content)
    if storage.get(PROPERTIES) != content:
        raise Unavailable(
            f"{_shown(storage, PROPERTIES)}: expected the {len(content):,} bytes just written, found others; "
            f"the properties from before are in '{PROPERTIES_BACKUP}'"
        )
    storage.delete(PROPERTIES_BACKUP)


def recover_table_properties(storage: Storage) -> None:
    """Finish what a writer that died while replacing the properties began. No change where nothing is amiss."""
    try:
        backup = storage.get(PROPERTIES_BACKUP)
    except NotFound:
        return
    try:
        decode_table_properties(storage.get(PROPERTIES), path=_shown(storage, PROPERTIES))
    except (NotFound, CorruptFile):
        decode_table_properties(backup, path=_shown(storage, PROPERTIES_BACKUP))
        storage.put(PROPERTIES, backup)
    storage.delete(PROPERTIES_BACKUP)


def _shown(storage: Storage, path: str) -> str:
    return f"{storage.location.uri.rstrip('/')}/{path}"
