"""The command `pyhudi properties`: show what a table stores, and change the options among it."""

from typing import Annotated

import typer

from pyhudi.cli.arguments import Json, Path, StorageOptions, TableOptions, pairs
from pyhudi.cli.output import Output


def properties(
    path: Path,
    put: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Store this option for later writes; may be repeated."),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Take this option away; may be repeated.")
    ] = None,
    option: TableOptions = None,
    storage_option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Show the table's properties, after changing the options that it stores for later writes."""
    from pyhudi.api.table import HudiTable
    from pyhudi.errors import Invalid, hide_secrets, is_secret

    output = Output(json)
    given = pairs(put, option="--set")
    with output.errors():
        if both := sorted(given.keys() & set(unset or ())):
            raise Invalid(f"option '{both[0]}': expected --set or --unset, found both")
        table = HudiTable.open(
            path,
            options=pairs(option, option="--option"),
            storage_options=pairs(storage_option, option="--storage-option"),
        )
        changes = {**given, **dict.fromkeys(unset or ())}
        found = table.set_properties(changes) if changes else table.properties
        if json:
            output.document(dict(found))
            return
        shown = [(name, "***" if is_secret(name) else hide_secrets(text)) for name, text in sorted(found.items())]
        output.table("Properties", ("name", "value"), shown)
