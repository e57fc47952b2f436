"""A procedure could have other arguments or columns than Apache Hudi's of the same name."""

import json
from typing import Final

import pytest

from pyhudi.spark.procedures.procedure import REQUIRED, Argument, Procedure
from pyhudi.spark.procedures.registry import PROCEDURES, REFUSED
from pyhudi.sql.words import split_list
from tests.support.reference.procedure_signatures import GOLDEN

THEIRS: Final = json.loads(GOLDEN.read_text())


def shown(argument: Argument) -> tuple[str, str, str]:
    default = argument.default
    text = "null" if default is None or default is REQUIRED else str(default)
    return argument.name, argument.type, text.lower() if isinstance(default, bool) else text


def columns_of(procedure: Procedure) -> list[list[str]]:
    pieces = (piece.rpartition(" ") for piece in split_list(procedure.columns))
    return [[name.strip("` "), {"int": "integer"}.get(kind, kind)] for name, _, kind in pieces]


def test_every_procedure_of_apache_hudi_is_known() -> None:
    assert len(THEIRS) == 71
    assert set(THEIRS) == (set(PROCEDURES) | set(REFUSED)) - {"help"}
    assert not set(PROCEDURES) & set(REFUSED)


@pytest.mark.parametrize("name", sorted(set(PROCEDURES) - {"help"}))
def test_arguments_and_columns_are_those_of_apache_hudi(name: str) -> None:
    ours, theirs = PROCEDURES[name], THEIRS[name]
    wanted = theirs["parameters"]
    first = [shown(one) for one in ours.arguments[: len(wanted)]]
    assert first == [(one, kind, "null" if default == "None" else default) for one, kind, default, _ in wanted]

    for argument, (_, _, _, is_required) in zip(ours.arguments, wanted, strict=False):
        names = [one.name for one in ours.arguments]
        may_be_path_instead = argument.name == "table" and "path" in names
        assert (argument.default is REQUIRED) == is_required or may_be_path_instead

    added = ours.arguments[len(wanted) :]
    assert all(one.default is not REQUIRED for one in added), "a call of Apache Hudi's works"
    assert columns_of(ours) == theirs["columns"]
