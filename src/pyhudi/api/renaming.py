"""Giving a table another name: in its properties, and where the caller keeps its name."""

from collections.abc import Callable

from pyhudi.api.handle import TableHandle
from pyhudi.errors import Conflict
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.table.facts.properties_file import read_table_properties, replace_table_properties
from pyhudi.timeline.active import Timeline

_NAME = "hoodie.table.name"


def rename_table(handle: TableHandle, name: str, keep: Callable[[], None], *, moves: bool) -> None:
    """Give the table another name, while no other writer begins or completes anything.

    `keep`: gives it the name elsewhere, such as in a catalog. If it fails, the table has its name of before. `moves`:
    it moves the table's folder, so that no writer may be at work.
    Raises: Conflict while a writer holds the table, or is at work on a table that would move; what `keep` raises.
    """
    _, merged, settings = handle.prepare(None)
    with handle.session(settings, CleanSettings.from_options(merged), "rename") as session:
        if moves:
            _refuse_busy(session.snapshot.timeline, handle)
        storage, now_ms = session.access.storage, session.access.clock.now_ms
        before = read_table_properties(storage)
        session.hold.confirm()
        replace_table_properties(storage, {**before, _NAME: name}, epoch_ms=now_ms())
        try:
            keep()
        except BaseException:
            replace_table_properties(storage, before, epoch_ms=now_ms())
            raise


def _refuse_busy(timeline: Timeline, handle: TableHandle) -> None:
    """Plans move with the table. A writer that is at work would go on where the table was."""
    plans = {one.requested for one in timeline.pending_services if one.state == "REQUESTED"}
    for one in timeline.pending:
        if one.requested not in plans:
            raise Conflict(
                f"table '{handle.name}': '{one.requested}' ({one.action}) is pending: expected no writer at work while "
                "the table's folder moves; rename it once that has ended, or was rolled back"
            )
