"""Keeping a commit of a table, going back to one, and taking one back."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TypeVar

from pyhudi.api.handle import TableHandle
from pyhudi.errors import Invalid
from pyhudi.format.properties import is_utf8
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.undo.restore import RestoreResult, restore_table
from pyhudi.services.undo.rollback import RollbackResult, roll_back_write
from pyhudi.services.undo.savepoint import Savepoint, delete_savepoint, put_savepoint
from pyhudi.txn.action.session import WriteSession

T = TypeVar("T")


def put(
    handle: TableHandle, instant: str | None, *, user: str, comment: str, options: Mapping[str, object] | None
) -> Savepoint:
    """As `HudiTable.savepoint`."""
    if instant is not None:
        _refuse_no_text(instant, "savepoint")
    for name, text in (("user", user), ("comment", comment)):
        if not (isinstance(text, str) and is_utf8(text)):
            raise Invalid(f"savepoint: expected text that UTF-8 can spell as its {name}, found {text!r}")
    return _told_turn(
        handle, "savepoint", options, lambda session: put_savepoint(session, instant, user=user, comment=comment)
    )


def delete(handle: TableHandle, instant: str, options: Mapping[str, object] | None) -> Savepoint:
    """As `HudiTable.delete_savepoint`."""
    _refuse_no_text(instant, "delete_savepoint")
    with _turn(handle, "delete savepoint", options) as session:
        return delete_savepoint(session, instant)


def restore(handle: TableHandle, instant: str, options: Mapping[str, object] | None) -> RestoreResult:
    """As `HudiTable.restore`."""
    _refuse_no_text(instant, "restore")
    return _told_turn(handle, "restore", options, lambda session: restore_table(session, instant), takes_over=instant)


def rollback(handle: TableHandle, instant: str, options: Mapping[str, object] | None) -> RollbackResult:
    """As `HudiTable.rollback`."""
    _refuse_no_text(instant, "rollback")
    return _told_turn(
        handle, "rollback", options, lambda session: roll_back_write(session, instant), takes_back=instant
    )


def _refuse_no_text(instant: object, call: str) -> None:
    if not isinstance(instant, str):
        hint = "; give its 'requested'" if hasattr(instant, "requested") else ""
        raise Invalid(f"{call}: expected the requested time of a commit as text, found {instant!r}{hint}")


def _told_turn(
    handle: TableHandle,
    service: str,
    options: Mapping[str, object] | None,
    work: Callable[[WriteSession], T],
    *,
    takes_over: str | None = None,
    takes_back: str | None = None,
) -> T:
    """What a service does in a turn at the table. Listeners are told."""

    def run() -> T:
        with _turn(handle, service, options, takes_over=takes_over, takes_back=takes_back) as session:
            return work(session)

    return handle.told(service, run)


def _turn(
    handle: TableHandle,
    what: str,
    options: Mapping[str, object] | None,
    *,
    takes_over: str | None = None,
    takes_back: str | None = None,
) -> AbstractContextManager[WriteSession]:
    _, merged, settings = handle.prepare(options)
    clean = CleanSettings.from_options(merged)
    return handle.session(
        settings, clean, what, is_write=False, takes_over=takes_over, takes_back=takes_back, undoes_dead=True
    )
