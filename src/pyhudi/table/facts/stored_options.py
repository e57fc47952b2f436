"""The options that a table stores as the defaults of later writes, and how they are changed. Pure."""

from collections.abc import Mapping
from typing import Final

from pyhudi.errors import Invalid
from pyhudi.options.entries import Kind
from pyhudi.options.names import INDEX_CLASS, OWN_PREFIX, WRITE_VERSION, canonical_name
from pyhudi.options.verdicts import find_entry
from pyhudi.table.facts.bucket_facts import BUCKET_OPTIONS, INDEX_TYPE
from pyhudi.table.facts.config import TableConfig

_PLACING: Final = ("hoodie.table.", "hoodie.keygen.")
"""How names begin by which rows were placed: with other values, stored keys would not be found."""


def changed_options(config: TableConfig, changes: Mapping[str, str | None]) -> dict[str, str]:
    """The table's properties with other options. `changes`: by the newest names; None: the option is taken away.

    Raises: Invalid for a fact of the table, and for an option that no table stores.
    """
    stored = {canonical_name(name): text for name, text in config.properties.items()}
    for name, text in changes.items():
        if text is not None:
            refuse_unstored(name, text)
        if text != stored.get(name):
            _refuse_fact(config, name, text, stored)
    kept = {name: text for name, text in config.properties.items() if canonical_name(name) not in changes}
    return {**kept, **{name: text for name, text in changes.items() if text is not None}}


def refuse_unstored(name: str, text: str) -> None:
    """Raises: Invalid for an option of one process, which no table stores."""
    if name.startswith(OWN_PREFIX):
        raise Invalid(
            f"option '{name}'='{text}': it is of one process, and no table stores it; give it to `open`, or to the "
            "write"
        )
    if name == INDEX_CLASS and text.strip():
        raise Invalid(
            f"option '{name}'='{text}': no table stores it, for Apache Hudi's writers would look for a class of Java "
            "of that name, and fail; give it to `open`, or to the write"
        )


def _refuse_fact(config: TableConfig, name: str, text: str | None, stored: Mapping[str, str]) -> None:
    if name == WRITE_VERSION and text is None:
        return
    entry = find_entry(name)
    is_fact = entry.fact is not None or entry.kind is Kind.PROPERTY or name.startswith(_PLACING)
    if name == INDEX_TYPE:
        is_fact = "BUCKET" in ((text or "").strip().upper(), stored.get(name, "").strip().upper())
    elif name in BUCKET_OPTIONS:
        is_fact = True
    if is_fact:
        has = f"has '{stored[name][:80]}'" if name in stored else "has none"
        buckets = "; rescale_buckets changes how many buckets partitions have" if name in BUCKET_OPTIONS else ""
        raise Invalid(
            f"property '{name}': expected an option of writes, found a fact of table '{config.name}', which {has} and "
            f"whose files go by it; leave it out, or make another table{buckets}"
        )
