"""A write that first makes its table one of a later version, where its caller asks for that."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from pyhudi.api.handle import TableHandle
from pyhudi.api.service_calls.versions import VersionCalls
from pyhudi.options.names import WRITE_VERSION
from pyhudi.options.table_facts import Fact, parse_fact
from pyhudi.options.values import OptionValues, flag
from pyhudi.versions import TableVersion

AUTO_UPGRADE: Final = "hoodie.write.auto.upgrade"


@dataclass(frozen=True, slots=True)
class UpgradeSettings:
    """Whether a write upgrades its table first. The default is pyhudi's own: Apache Hudi upgrades unless told not to.

    `to`: the version; None: the newest.
    """

    is_automatic: bool = flag(AUTO_UPGRADE, False)
    to: int | None = None

    @classmethod
    def from_options(cls, callers: Mapping[str, str]) -> Self:
        """The settings that a caller's options ask for. The table's properties have no say: they would change it.

        Raises: Invalid for a bad value.
        """
        text = callers.get(WRITE_VERSION, "").strip()
        to = parse_fact(Fact.VERSION, WRITE_VERSION, text) if text else None
        return cls(**OptionValues(callers).fields(cls), to=to if isinstance(to, int) else None)


class _Calls(VersionCalls):
    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle


def upgrade_when_asked(handle: TableHandle, options: Mapping[str, object] | None) -> None:
    """Upgrade the table before a write whose options ask for it, and whose version is later than the table's.

    Requests: none for a write that does not ask. Raises: as `HudiTable.upgrade`.
    """
    settings = UpgradeSettings.from_options(handle.callers_options(options))
    if settings.is_automatic and _is_behind(handle.access.config().version, settings.to):
        _Calls(_without(handle, WRITE_VERSION)).upgrade(settings.to, options=_others(options))


def _is_behind(version: TableVersion, to: int | None) -> bool:
    return to is None or version.number < to


def _without(handle: TableHandle, name: str) -> TableHandle:
    options = {key: value for key, value in handle.options.items() if key != name}
    return replace(handle, options=options)


def _others(options: Mapping[str, object] | None) -> dict[str, object]:
    return {name: value for name, value in (options or {}).items() if name != WRITE_VERSION}
