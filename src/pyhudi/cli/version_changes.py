"""The commands `pyhudi upgrade` and `pyhudi downgrade`: make a table one of another version, or say what that takes."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import Json, Path, StorageOptions, TableOptions, pairs
from pyhudi.cli.output import Output

if TYPE_CHECKING:
    from pyhudi import HudiTable
    from pyhudi.services.upgrade.run import VersionResult

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say each step, and do none.")]


def upgrade(
    path: Path,
    to: Annotated[int | None, typer.Option("--to", help="The version: 6, 7, 8 or 9. Without it, the newest.")] = None,
    dry_run: DryRun = False,
    option: TableOptions = None,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Make a table one of a later version. Stop the readers and writers of other tools first."""

    def run(table: "HudiTable") -> "VersionResult":
        return table.upgrade(to, options=pairs(option, option="--option"), dry_run=dry_run)

    _change(path, storage_option, json, run)


def downgrade(
    path: Path,
    to: Annotated[int, typer.Option("--to", help="The version: 8, 7, 6 or 5.")],
    dry_run: DryRun = False,
    option: TableOptions = None,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Make a table one of an earlier version. Stop the readers and writers of other tools first."""

    def run(table: "HudiTable") -> "VersionResult":
        return table.downgrade(to, options=pairs(option, option="--option"), dry_run=dry_run)

    _change(path, storage_option, json, run)


def _change(
    path: str, storage_option: StorageOptions, json: bool, run: Callable[["HudiTable"], "VersionResult"]
) -> None:
    output = Output(json)
    with output.errors():
        from pyhudi import HudiTable

        table = HudiTable.open(path, storage_options=pairs(storage_option, option="--storage-option"))
        _show(output, json, run(table))


def _show(output: Output, json: bool, result: "VersionResult") -> None:
    if json:
        output.document(asdict(result))
        return
    for step in result.steps:
        output.line(step)
    if not result.steps:
        output.line(f"Nothing was changed: the table has version {result.after}")
    elif result.is_dry_run:
        output.line(f"Nothing was changed: version {result.before} would become {result.after}")
    else:
        output.line(f"Version {result.before} is {result.after} now")
