"""The command `pyhudi service`: looks after tables until it is told to stop."""

import signal
import threading
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import Json, StorageOptions, TableOptions, pairs
from pyhudi.cli.output import DIFFERENT, Output
from pyhudi.cli.status_file import StatusFile

if TYPE_CHECKING:
    from pyhudi.api.service_calls.process import ServiceReport


def service(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Base paths of tables.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="SERVICE", help="This service only; may be repeated.")
    ] = None,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between two rounds.")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="One round.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is due, and why the rest is not.")] = False,
    status: Annotated[
        FilePath | None, typer.Option("--status", help="Keep a JSON document of how it goes in this file.")
    ] = None,
    option: TableOptions = None,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Carry out compactions, clusterings, cleans, archivals and more when they are due, beside the tables' writers.

    A signal (SIGTERM, SIGINT) ends it after the service that is running; a second one ends it at once. What it leaves
    is finished by the next.
    """
    from pyhudi.services import run
    from pyhudi.services.rounds.telling import ErrorsLogged

    output = Output(json)
    file = None if status is None else StatusFile(status)
    keep = None if file is None else ErrorsLogged(file.keep, file.what)
    shown: dict[tuple[str, str], tuple[str, str]] = {}

    def show(report: "ServiceReport") -> None:
        """At each change."""
        if keep is not None:
            keep(report)
        if not json:
            _show_changes(output, report, shown)

    with output.errors():
        if file is not None:
            file.check()
        report = run(
            paths, services=only, options=pairs(option, option="--option"),
            storage_options=pairs(storage_option, option="--storage-option"),
            interval_s=interval, once=once, dry_run=dry_run, stop=_stopped_by_signals(), on_change=show, on_round=keep,
        )  # fmt: skip

    if keep is not None:
        keep(report)
    if json:
        output.document(report.document())
    elif dry_run:
        for uri, found in report.tables.items():
            rows = [(one.service.value, "due" if one.state == "due" else "not due", one.reason) for one in found]
            output.table(uri, ("service", "", "why"), rows)
    if report.has_failed:
        raise typer.Exit(DIFFERENT)


def _stopped_by_signals() -> threading.Event:
    """An event that the first signal sets. After it the signals do what they always do."""
    stop = threading.Event()

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.default_int_handler)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop


def _show_changes(output: Output, report: "ServiceReport", shown: dict[tuple[str, str], tuple[str, str]]) -> None:
    """Print what services did, and what was in their way, when it changes.

    Of idle ones nothing is printed, unless one had begun and found nothing to do.
    """
    for uri, found in report.tables.items():
        for one in found:
            now, before = (one.state.value, one.reason), shown.get((uri, one.service), ("", ""))
            if one.state == "idle" and before[0] == "running":
                output.line(f"{uri}: {one.service.value} found nothing to do: {one.reason}")
            elif before != now and one.state not in ("idle", "due"):
                made = f" as {one.requested}" if one.state == "done" and one.requested else ""
                output.line(f"{uri}: {one.service.value} {one.state.value}{made}: {one.reason}")
            shown[uri, one.service] = now
