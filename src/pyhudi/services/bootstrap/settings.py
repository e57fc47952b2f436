"""How the partitions of a source become partitions of a table: by their rows, or by metadata only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias, get_args

from pyhudi.errors import Invalid
from pyhudi.options.table_facts import short_class_name
from pyhudi.options.values import OptionValues, choice
from pyhudi.predicate.patterns import checked_java_regex, whole_matches

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
    """Which mode each partition gets.

    `pattern`: a Java regular expression. Partitions whose whole path it matches get `mode`, all others the other mode.
    None: all get `mode`.
    `decodes_paths`: `%2F` in the name of a source's folder becomes `/` in the table's partition path.
    """

    mode: BootstrapMode = choice(REGEX_MODE, "METADATA_ONLY", get_args(BootstrapMode))
    pattern: str | None = None
    decodes_paths: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a selector that is none, and for a pattern that RE2 does not run as Java does."""
        selector = short_class_name(options.get(SELECTOR, "").strip()) or "MetadataOnlyBootstrapModeSelector"
        decodes = short_class_name(options.get(TRANSLATOR, "").strip()) == _DECODED
        if selector != _BY_REGEX:
            if selector not in _SELECTORS:
                known = ", ".join((*_SELECTORS, _BY_REGEX))
                raise Invalid(f"option '{SELECTOR}'='{options[SELECTOR]}': expected one of {known}")
            return cls(mode=_SELECTORS[selector], decodes_paths=decodes)

        pattern = checked_java_regex(options.get(REGEX, "") or ".*", option=REGEX)
        return cls(**OptionValues(options).fields(cls), pattern=pattern, decodes_paths=decodes)

    def modes_of(self, folders: Sequence[str]) -> list[BootstrapMode]:
        """The mode of each partition. `folders`: the source's folders, relative to the source."""
        if self.pattern is None:
            return [self.mode] * len(folders)
        other: BootstrapMode = "FULL_RECORD" if self.mode == "METADATA_ONLY" else "METADATA_ONLY"
        return [self.mode if matches else other for matches in whole_matches(folders, self.pattern)]
