"""The entry point of the command `pyhudi`; `python -m pyhudi.cli` is the same command."""

import sys


def main() -> None:
    """Run the command line. If typer or rich is missing, print what to install."""
    try:
        from pyhudi.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        print("pyhudi: the command line needs typer and rich: pip install 'pyhudi[cli]'", file=sys.stderr)
        sys.exit(1)

    app()


if __name__ == "__main__":
    main()
