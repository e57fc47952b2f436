"""The command `pyhudi options`: what pyhudi does with each option of Apache Hudi."""

from dataclasses import asdict
from typing import Annotated

import typer

from pyhudi.cli.arguments import Json
from pyhudi.cli.output import Output
from pyhudi.options.entries import Verdict


def options(
    containing: Annotated[str, typer.Argument(metavar="TEXT", help="Part of a name; all names without it.")] = "",
    verdict: Annotated[Verdict | None, typer.Option("--verdict", help="Only names of this verdict.")] = None,
    json: Json = False,
) -> None:
    """What becomes of each option of Apache Hudi: a setting, harmless here, or refused beyond its default."""
    from pyhudi.options.verdicts import option_verdicts

    output = Output(is_json=json)
    with output.errors():
        found = option_verdicts(containing, verdict)
        if json:
            output.document([asdict(each) for each in found])
            return
        if not found:
            of = "" if verdict is None else f" of verdict {verdict.value}"
            output.line(f"No name{of} contains '{containing}'." if containing else f"There is no name{of}.")
            return
        rows = [(each.name, each.verdict.value, ", ".join(each.accepts), each.reason) for each in found]
        output.table(None, ("option", "verdict", "accepts", "why"), rows)
