"""The settings of the expiry of partitions: after how long, by which time, and when it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pyhudi.options.table_facts import short_class_name
from pyhudi.options.values import OptionValues, count, flag

DAYS = "hoodie.partition.ttl.strategy.days.retain"
SELECTED = "hoodie.partition.ttl.strategy.partition.selected"
STRATEGY = "hoodie.partition.ttl.management.strategy.type"
STRATEGY_CLASS = "hoodie.partition.ttl.strategy.class"

DAYS_MAX = 366 * 10_000
_OFF = "-1"


class ExpiryTime(StrEnum):
    """The time from which a partition's days count.

    LAST_WRITE: of the newest write to it. CREATION: of the write that made it.
    """

    LAST_WRITE = "KEEP_BY_TIME"
    CREATION = "KEEP_BY_CREATION_TIME"


_CLASSES = {"KeepByTimeStrategy": ExpiryTime.LAST_WRITE, "KeepByCreationTimeStrategy": ExpiryTime.CREATION}


@dataclass(frozen=True, slots=True)
class ExpirySettings:
    """Settings of the expiry of partitions; the defaults are Apache Hudi's.

    `is_inline`: it follows each write. `days`: a partition whose time lies further back has expired; None: none ever
    does. `selected`: only these partitions may expire; None: all. `partitions_max`: one run deletes so many at most,
    the oldest, so that its commit stays small.
    """

    is_inline: bool = flag("hoodie.partition.ttl.inline", False)
    by: ExpiryTime = ExpiryTime.LAST_WRITE
    days: int | None = None
    selected: tuple[str, ...] | None = None
    partitions_max: int = count("hoodie.partition.ttl.strategy.max.delete.partitions", 1000, least=0)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for. A class of Apache Hudi says more than a type, as there.

        Raises: Invalid for a bad value, naming the option, what was found and what was expected.
        """
        o, d = OptionValues(options), cls()
        by = ExpiryTime(o.choice(STRATEGY, d.by.value, tuple(time.value for time in ExpiryTime)))
        if named := short_class_name(options.get(STRATEGY_CLASS, "").strip()):
            by = _CLASSES[OptionValues({STRATEGY_CLASS: named}).choice(STRATEGY_CLASS, "", tuple(_CLASSES))]

        is_off = options.get(DAYS, "").strip() == _OFF
        days = 0 if is_off else o.count(DAYS, 0, least=0, most=DAYS_MAX)
        paths = tuple(dict.fromkeys(path.strip() for path in options.get(SELECTED, "").split(",") if path.strip()))
        return cls(**o.fields(cls), by=by, days=days or None, selected=paths or None)
