"""The command line app with all its commands. Modules that take long to import are imported by the command itself."""

from typing import Annotated

import typer

from pyhudi.cli.cluster import cluster
from pyhudi.cli.expire import expire
from pyhudi.cli.metadata import metadata_app
from pyhudi.cli.options import options
from pyhudi.cli.properties import properties
from pyhudi.cli.service import service
from pyhudi.cli.version_changes import downgrade, upgrade

app = typer.Typer(
    name="pyhudi",
    help="Apache Hudi tables from the command line.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # they may hold credentials
)
app.add_typer(metadata_app, name="metadata")
app.command("cluster")(cluster)
app.command("options")(options)
app.command("expire")(expire)
app.command("properties")(properties)
app.command("service")(service)
app.command("upgrade")(upgrade)
app.command("downgrade")(downgrade)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"pyhudi {version('pyhudi')}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Apache Hudi tables from the command line."""
