"""The folder of a table that is being bootstrapped: claimed before the first byte, cleared after a failure.

The table is there once its properties are, and these come last. Until then a file marks the folder as the bootstrap's
own. So whatever a bootstrap leaves that dies is told apart from other files, and the next bootstrap clears it.
"""

from pyhudi.errors import Conflict, OutcomeUnknown, Unavailable
from pyhudi.format.names import HOODIE, PROPERTIES
from pyhudi.storage.protocol import Storage
from pyhudi.storage.withheld import WithheldStorage
from pyhudi.table.facts.creation import BOOTSTRAP_MARK, refuse_occupied
from pyhudi.txn.action.session import TableAccess
from pyhudi.txn.locks.hold import Hold
from pyhudi.txn.locks.waiting import awaited_hold

_OURS = f"{HOODIE}/.pyhudi_"
"""How the files of locks begin, and the mark."""


def claim_folder(access: TableAccess, token: str, *, purpose: str, wait_ms: int) -> None:
    """Mark the folder as that of the bootstrap `token`. What a dead bootstrap left is deleted first.

    Raises: Invalid where a table or other files are; Conflict while another bootstrap runs.
    """
    storage = access.storage
    with awaited_hold(access.guard, purpose, clock=access.clock, wait_ms=wait_ms) as hold:
        refuse_others(storage)
        if storage.head(BOOTSTRAP_MARK) is not None:
            clear_folder(storage, hold, keeps_mark=True)
        hold.confirm()
        storage.put(BOOTSTRAP_MARK, token.encode())


def refuse_others(storage: Storage) -> None:
    """Refuse a folder that holds anything but what a dead bootstrap left. Raises: Invalid."""
    if storage.head(BOOTSTRAP_MARK) is None or storage.head(PROPERTIES) is not None:
        refuse_occupied(storage)


def confirm_claim(storage: Storage, token: str) -> None:
    """Raises: Conflict where another bootstrap has claimed the folder since."""
    found = storage.get(BOOTSTRAP_MARK) if storage.head(BOOTSTRAP_MARK) is not None else b""
    if found != token.encode():
        raise Conflict(f"{storage.location.uri}: another bootstrap began here at the same moment; open its table")


def clear_folder(storage: Storage, hold: Hold, *, keeps_mark: bool = False) -> None:
    """Delete all that a bootstrap has written. The mark goes last, so that a crash meanwhile leaves it."""
    hold.confirm()
    for folder in list(storage.list_folders("")):
        if folder != HOODIE:
            storage.delete_prefix(folder)
    files = [file.path for file in storage.list("", recursive=True)]
    storage.delete_many(path for path in files if not path.startswith(_OURS))
    if not keeps_mark:
        storage.delete(BOOTSTRAP_MARK)


def show_table(withheld: WithheldStorage, storage: Storage) -> None:
    """Put the table's properties: from here on it is there, with all of its rows.

    Raises: Conflict where somebody made a table here meanwhile; OutcomeUnknown where the store does not say.
    """
    uri = storage.location.uri
    try:
        is_shown = withheld.show_new(PROPERTIES)
    except Unavailable as error:
        raise OutcomeUnknown(
            f"{uri}: the bootstrap is done, and the store does not say whether '{PROPERTIES}' was put: {error}; open "
            "the table or, if there is none, run the bootstrap again"
        ) from error
    if not is_shown:
        raise Conflict(f"{uri}: a table was created here while the bootstrap ran; choose another path")
    storage.delete(BOOTSTRAP_MARK)
