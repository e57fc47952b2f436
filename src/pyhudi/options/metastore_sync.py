"""What a write to a path asks a metastore to be told of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.resolve import find_fact
from pyhudi.options.table_facts import Fact
from pyhudi.options.values import OptionValues, choice, flag

Strategy = Literal["ALL", "RO", "RT"]

_PREFIX: Final = "hoodie.datasource.hive_sync."
_ENABLE: Final = f"{_PREFIX}enable"
_ALSO_ENABLE: Final = "hoodie.datasource.meta.sync.enable"
_TOOL: Final = "hoodie.meta.sync.client.tool.class"
METASTORE: Final = f"{_PREFIX}metastore.uris"


@dataclass(frozen=True, slots=True)
class MetastoreSyncSettings:
    """The names of a table in a metastore. The defaults are Apache Hudi's.

    `table`: its name; empty: that of the table itself. `uris`: of the metastore; empty: the session's own.
    `strategy`: of a merge-on-read table: `ALL`: `_rt` at the end of its name for the newest rows, `_ro` for the base
    files alone; `RT` and `RO`: its plain name for one of them. `plain_ro`: the name of the base files has no `_ro`.
    `also_plain`: with `ALL`, the plain name stands for the newest rows, too.
    """

    database: str = "default"
    table: str = ""
    uris: str = ""
    makes_database: bool = flag(f"{_PREFIX}auto_create_database", True)
    strategy: Strategy = choice(f"{_PREFIX}table.strategy", "ALL", ("ALL", "RO", "RT"))
    plain_ro: bool = flag(f"{_PREFIX}skip_ro_suffix", False)
    also_plain: bool = flag("hoodie.meta.sync.sync_snapshot_with_table_name", True)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self | None:
        """What the options of a write, as texts, ask for; None where they ask for no sync.

        Raises: Invalid for a bad value; Unsupported for a tool that tells other catalogs.
        """
        values = OptionValues(options)
        if not _is_asked(values):
            return None
        tool = options.get(_TOOL, "").strip()
        if tool.rpartition(".")[2] not in ("", "HiveSyncTool"):
            raise Unsupported(f"option '{_TOOL}'='{tool}': expected HiveSyncTool, which tells a Hive metastore")
        return cls(
            **values.fields(cls),
            database=(options.get(f"{_PREFIX}database") or options.get("hoodie.database.name") or "default").lower(),
            table=(options.get(f"{_PREFIX}table") or str(find_fact(options, Fact.NAME) or "")).lower(),
            uris=options.get(METASTORE, "").strip(),
        )

    def names(self, table: str, *, has_logs: bool) -> dict[str, bool]:
        """The names of a table, and whether each stands for its base files alone. `table`: its own name."""
        plain = self.table or table.lower()
        if not plain:
            raise Invalid(f"option '{_PREFIX}table': expected the table's name, found none")
        if not has_logs or self.strategy != "ALL":
            return {plain: has_logs and self.strategy == "RO"}
        found = {f"{plain}_rt": False, plain if self.plain_ro else f"{plain}_ro": True}
        return {plain: False, **found} if self.also_plain else found


def refuse_another_name(options: Mapping[str, object], name: Sequence[str]) -> None:
    """Raises: Invalid where a sync is asked for of another table than a write by this name is to."""
    if not _is_asked(OptionValues({option: str(value) for option, value in options.items()})):
        return
    for part, text in zip(("table", "database"), reversed(name), strict=False):
        said = str(options.get(f"{_PREFIX}{part}") or text)
        if said.lower() != text.lower():
            raise Invalid(
                f"option '{_PREFIX}{part}'='{said}': expected '{text}', for the table is written by the name "
                f"'{'.'.join(name)}'; leave the option out, or write to the path"
            )


def _is_asked(values: OptionValues) -> bool:
    return values.flag(_ENABLE, False) or values.flag(_ALSO_ENABLE, False)


def without_sync(options: Mapping[str, object]) -> dict[str, object]:
    """The options of a write that is no sync's."""
    return {name: value for name, value in options.items() if not _is_of_sync(name)}


def _is_of_sync(name: str) -> bool:
    return name.startswith((_PREFIX, "hoodie.meta.sync.")) or name == _ALSO_ENABLE
