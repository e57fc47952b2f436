"""Arguments and options that commands share."""

from collections.abc import Sequence
from typing import Annotated

import typer

Path = Annotated[str, typer.Argument(help="The table's base path: a folder, or a URI such as s3://bucket/table.")]
Json = Annotated[bool, typer.Option("--json", help="Answer with one JSON document.")]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option("--storage-option", metavar="NAME=VALUE", help="An option of the store; may be repeated."),
]
TableOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A hoodie.* option of this call; may be repeated."),
]


def pairs(texts: Sequence[str] | None, *, option: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a mapping. An error does not show the text itself, because it may be a secret."""
    found: dict[str, str] = {}
    for number, text in enumerate(texts or (), start=1):
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"number {number}: expected NAME=VALUE", param_hint=option)
        found[name] = value
    return found
