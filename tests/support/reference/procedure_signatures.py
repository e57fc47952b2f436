"""What Apache Hudi's `CALL help` says of its procedures, as plain data: `python -m` writes the golden file anew."""

import json
from pathlib import Path
from typing import TypeAlias

from tests.support.reference.client import ReferenceHudi
from tests.support.reference.environment import PROJECT

GOLDEN = PROJECT / "tests" / "golden" / "procedures" / "signatures_h120.json"
RELEASES = ("0.15.0", "1.0.2", "1.2.0")

Signature: TypeAlias = dict[str, object]


def names_in(text: str) -> list[str]:
    """The procedures that the answer of `CALL help` lists."""
    lines = text.splitlines()
    return [line.split("\t")[1].strip() for line in lines if line.startswith("\t") and "\tclass " in line]


def signature_in(text: str) -> Signature:
    """Parameters (name, type, default, whether required) and result columns (name, type) of `CALL help(cmd => …)`."""
    head, _, tail = text.partition("outputType:")
    rows = [[cell.strip() for cell in line.split("\t")[1:]] for line in head.splitlines()[2:] if line.startswith("\t")]
    columns = [[cell.strip() for cell in line.split("\t")[1:3]] for line in tail.splitlines()[2:] if "\t" in line]
    return {
        "parameters": [[name, kind, default, required == "true"] for name, kind, default, required in rows],
        "columns": columns,
    }


def read_signatures(hudi: ReferenceHudi) -> dict[str, Signature]:
    """Every procedure of one release."""
    return {
        name: signature_in(_text(hudi, f"CALL help(cmd => '{name}')")) for name in names_in(_text(hudi, "CALL help"))
    }


def _text(hudi: ReferenceHudi, call: str) -> str:
    answer = hudi.sql(call)
    assert answer is not None
    return "\n".join(answer.column(0).to_pylist())


def write_golden(path: Path = GOLDEN) -> None:
    since: dict[str, str] = {}
    signatures: dict[str, Signature] = {}
    for release in RELEASES:
        with ReferenceHudi(release) as hudi:
            signatures = read_signatures(hudi)
        for name in signatures:
            since.setdefault(name, release)
    rows = [
        f" {json.dumps(name)}: {json.dumps({'seen_since': since[name], **signatures[name]})}"
        for name in sorted(signatures)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    write_golden()
