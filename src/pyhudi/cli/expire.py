"""The command `pyhudi expire`: delete the partitions that have expired, or show which ones would go."""

from dataclasses import asdict
from typing import Annotated

import typer

from pyhudi.cli.arguments import Json, Path, StorageOptions, TableOptions, pairs
from pyhudi.cli.output import Output


def expire(
    path: Path,
    days: Annotated[
        int | None,
        typer.Option("--days", min=1, help="Keep partitions for so many days; else as the table's properties say."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and delete nothing.")] = False,
    option: TableOptions = None,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Delete the partitions whose days are over, in one commit."""
    from pyhudi.api.table import HudiTable
    from pyhudi.services.expiry.settings import DAYS

    output = Output(json)
    options = {**pairs(option, option="--option"), **({} if days is None else {DAYS: str(days)})}
    with output.errors():
        table = HudiTable.open(path, storage_options=pairs(storage_option, option="--storage-option"))
        found = table.expire_partitions(options=options, dry_run=dry_run)
        if json:
            output.document(asdict(found))
            return

        if found.expired:
            title = "Would be deleted" if dry_run else f"Deleted by commit {found.requested}"
            rows = [tuple(asdict(one).values()) for one in found.expired]
            output.table(title, ("partition", "since", "file groups", "bytes"), rows)
        if found.kept:
            output.table("Kept for now", ("partition", "why"), [(one.partition, one.why) for one in found.kept])
        if found.reason:
            output.line(f"Nothing was deleted: {found.reason}")
