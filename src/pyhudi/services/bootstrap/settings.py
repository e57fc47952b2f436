"""How the partitions of a source become partitions of a table: by their rows, or by metadata only."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias, get_args

from pyhudi.errors import Invalid
from pyhudi.options.table_facts import short_class_name
from pyhudi.options.values import OptionValues, choice

BootstrapMode: TypeAlias = Literal["METADATA_ONLY", "FULL_RECORD"]

SELECTOR: Final = "hoodie.bootstrap.mode.selector"
REGEX: Final = "hoodie.bootstrap.mode.selector.regex"
REGEX_MODE: Final = "hoodie.bootstrap.mode.selector.regex.mode"
TRANSLATOR: Final = "hoodie.bootstrap.partitionpath.translator.class"

_SELECTORS: Final[Mapping[str, BootstrapMode]] = {
    "MetadataOnlyBootstrapModeSelector": "METADATA_ONLY",
    "FullRecordBootstrapModeSelector": "FULL_RECORD",
}
_BY_REGEX: Final = "BootstrapRegexModeSelector"
_DECODED: Final = "DecodedBootstrapPartitionPathTranslator"


@dataclass(frozen=True, slots=True)
class BootstrapSettings:
    """`pattern`: partitions whose whole path it matches get `mode`, all others the other mode; None: all get `mode`.

    `decodes_paths`: `%2F` in the name of a source's folder becomes `/` in the table's partition path.
    """

    mode: BootstrapMode = choice(REGEX_MODE, "METADATA_ONLY", get_args(BootstrapMode))
    pattern: re.Pattern[str] | None = None
    decodes_paths: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a selector that is none, and for a regular expression that Python does not read."""
        selector = short_class_name(options.get(SELECTOR, "").strip()) or "MetadataOnlyBootstrapModeSelector"
        decodes = short_class_name(options.get(TRANSLATOR, "").strip()) == _DECODED
        if selector != _BY_REGEX:
            if selector not in _SELECTORS:
                known = ", ".join((*_SELECTORS, _BY_REGEX))
                raise Invalid(f"option '{SELECTOR}'='{options[SELECTOR]}': expected one of {known}")
            return cls(mode=_SELECTORS[selector], decodes_paths=decodes)

        text = options.get(REGEX, "") or ".*"
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise Invalid(f"option '{REGEX}'='{text}': expected a regular expression: {error}") from None
        return cls(**OptionValues(options).fields(cls), pattern=pattern, decodes_paths=decodes)

    def mode_of(self, folder: str) -> BootstrapMode:
        """The mode of a partition. `folder`: the source's folder, relative to the source."""
        if self.pattern is None or self.pattern.fullmatch(folder) is not None:
            return self.mode
        return "FULL_RECORD" if self.mode == "METADATA_ONLY" else "METADATA_ONLY"
