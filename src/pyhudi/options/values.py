"""Parses the texts of options to flags, numbers and choices, and declares options beside the fields that they set.

Example: `wait_ms: int = count("hoodie.write.lock.wait_time_ms", 60_000, least=0)` is a field of a settings class.
`OptionValues.fields` gives the values of all such fields of a class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast

from pyhudi.errors import Invalid
from pyhudi.options.table_facts import parse_flag

COUNT_MAX = 2**63 - 1
"""The largest whole number that an option may state: the maximum of Java's long, which Apache Hudi parses it to."""

_T = TypeVar("_T", bound=str)
OPTION, _READ = "option", "read"
"""Under these keys the metadata of a field hold the name of its option, and the function that reads it."""


@dataclass(frozen=True, slots=True)
class OptionValues:
    """Options by name. An absent or empty option gives the default. A text that is no value raises Invalid."""

    texts: Mapping[str, str]

    def fields(self, settings: type) -> dict[str, Any]:
        """Field -> value, for the fields of a settings class that are declared with an option."""
        return {one.name: one.metadata[_READ](self) for one in fields(settings) if _READ in one.metadata}

    def flag(self, name: str, default: bool) -> bool:
        text = self.texts.get(name, "")
        return parse_flag(name, text) if text.strip() else default

    def count(self, name: str, default: int, *, least: int = 1, most: int = COUNT_MAX) -> int:
        text = self.texts.get(name, "").strip()
        if not text:
            return default
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(COUNT_MAX))
        if not is_number or not least <= int(text) <= most:
            is_large = text.isascii() and text.isdigit() and int(text[:40]) > COUNT_MAX
            to = f" and at most {most:,}" if most < COUNT_MAX or is_large else ""
            raise Invalid(f"option '{name}'='{text[:40]}': expected a whole number of at least {least:,}{to}")
        return int(text)

    def rate(self, name: str, default: float) -> float:
        return self._number(name, default, below=1, expected="a number between 0 and 1, both excluded")

    def factor(self, name: str, default: float) -> float:
        return self._number(name, default, below=1e6, expected="a number above 0")

    def _number(self, name: str, default: float, *, below: float, expected: str) -> float:
        text = self.texts.get(name, "").strip()
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value < below:
            raise Invalid(f"option '{name}'='{text}': expected {expected}")
        return value

    def choice(self, name: str, default: _T, known: tuple[str, ...]) -> _T:
        """One of `known`, in upper or lower case."""
        text = self.texts.get(name, "").strip()
        if not text:
            return default
        for value in known:
            if value.lower() == text.lower():
                return cast(_T, value)
        raise Invalid(f"option '{name}'='{text}': expected {' or '.join(known)}")


def flag(name: str, default: bool) -> bool:
    """A field that an option switches on or off."""
    return cast(bool, _declared(name, default, OptionValues.flag))


def count(name: str, default: int, *, least: int = 1, most: int = COUNT_MAX) -> int:
    """A field that an option sets to a whole number from `least` to `most`."""
    return cast(int, _declared(name, default, OptionValues.count, least=least, most=most))


def rate(name: str, default: float) -> float:
    """A field that an option sets to a number between 0 and 1."""
    return cast(float, _declared(name, default, OptionValues.rate))


def factor(name: str, default: float) -> float:
    """A field that an option sets to a number above 0."""
    return cast(float, _declared(name, default, OptionValues.factor))


def choice(name: str, default: _T, known: tuple[str, ...]) -> _T:
    """A field that an option sets to one of `known`."""
    return cast(_T, _declared(name, default, OptionValues.choice, known=known))


def _declared(name: str, default: object, read: Callable[..., object], **bounds: object) -> object:
    return field(
        default=default, metadata={OPTION: name, _READ: lambda options: read(options, name, default, **bounds)}
    )
