"""The list of options could leave names out, or say something else than writes do."""

import json

from typer.testing import CliRunner

from pyhudi import option_verdicts
from pyhudi.cli.app import app

RUNNER = CliRunner()


def test_the_command_lists_what_python_lists() -> None:
    result = RUNNER.invoke(app, ["options", "hive_sync", "--verdict", "refused", "--json"])

    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each["name"] for each in found] == [v.name for v in option_verdicts("hive_sync", "refused")]
    assert found[0]["accepts"] == ["false"]


def test_people_see_the_reason() -> None:
    result = RUNNER.invoke(app, ["options", "hoodie.embed.timeline.server.port"], env={"COLUMNS": "300"})

    assert result.exit_code == 0, result.output
    assert "there is no timeline server" in result.stdout
    assert "harmless" in result.stdout


def test_a_text_that_no_name_contains_is_told() -> None:
    for verdict, of in (((), ""), (("--verdict", "refused"), " of verdict refused")):
        result = RUNNER.invoke(app, ["options", "nosuchthing", *verdict])
        assert (result.exit_code, result.stdout) == (0, f"No name{of} contains 'nosuchthing'.\n")
    assert json.loads(RUNNER.invoke(app, ["options", "nosuchthing", "--json"]).stdout) == []


def test_an_unknown_verdict_is_an_error() -> None:
    assert RUNNER.invoke(app, ["options", "--verdict", "ignored"]).exit_code == 2
