"""How many buckets each partition has, where a table states that by rules over partition paths.

Spec: format/indexes.md section 4. Seen: 1.2.0 (`PartitionBucketIndexHashingConfig`).
"""

import json
from dataclasses import dataclass
from typing import Final, Self

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.keys.hashing_metadata import COUNTS_BY_PARTITION, INITIAL_INSTANT
from pyhudi.format.pretty_json import pretty_json

CONFIGS: Final = f"{COUNTS_BY_PARTITION}/configs"
ARCHIVED: Final = f"{COUNTS_BY_PARTITION}/archive"
"""The folders of the rules that may be in force, and of older ones that Apache Hudi moved away."""

REGEX: Final = "regex"
"""The only kind of rules that there is."""

_SUFFIX: Final = ".hashing_config"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """The rules of a table.

    `rules`: a Java regular expression and a count each; the first one that is found in a partition's path says its
    count. `default`: of partitions that no rule takes. `instant`: of the action that set the rules; empty for rules
    that only options state.
    """

    rules: tuple[tuple[str, int], ...]
    default: int
    instant: str = INITIAL_INSTANT

    @property
    def is_stored(self) -> bool:
        """Whether the table keeps the rules."""
        return bool(self.instant)

    @property
    def path(self) -> str:
        return counts_path(self.instant)

    @property
    def expressions(self) -> str:
        """The rules as one text, as `parse_rules` reads it."""
        return ";".join(f"{pattern},{count}" for pattern, count in self.rules)

    def encode(self) -> bytes:
        """The file's bytes, as Apache Hudi 1.2.0 lays them out."""
        return pretty_json(
            {
                "expressions": self.expressions,
                "defaultBucketNumber": self.default,
                "rule": REGEX,
                "version": _VERSION,
                "instant": self.instant,
            }
        ).encode()

    @classmethod
    def decode(cls, content: bytes, *, path: str) -> Self:
        """The rules in a file's bytes. Raises: CorruptFile for bytes that are none."""
        try:
            value = json.loads(content)
            rules = parse_rules(value["expressions"])
            kind, default, instant = value["rule"], value["defaultBucketNumber"], value["instant"]
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError, Invalid) as error:
            raise CorruptFile(path, 0, expected="rules for bucket counts as JSON", found=str(error)) from None
        if str(kind).lower() != REGEX or type(default) is not int or default < 1 or not isinstance(instant, str):
            raise CorruptFile(
                path, 0, expected=f"rules of the kind '{REGEX}', with a default count and an instant",
                found=f"{kind!r:.50}, {default!r:.50}, {instant!r:.50}",
            )  # fmt: skip
        return cls(rules, default, instant)


def counts_path(instant: str) -> str:
    """Where the rules lie that an action set."""
    return f"{CONFIGS}/{instant}{_SUFFIX}"


def instant_of_file(name: str) -> str | None:
    """The instant of a file of rules; None for any other file."""
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) else None


def parse_rules(text: str) -> tuple[tuple[str, int], ...]:
    """The rules in a text such as `2026-1[12].*,16;.*,4`: a regular expression and a count each.

    Raises: Invalid for a text that is none.
    """
    rules = []
    for rule in text.split(";"):
        pattern, comma, count = rule.strip().partition(",")  # Apache Hudi takes no pattern with a comma, either
        if not comma or not count.strip().isascii() or not count.strip().isdecimal() or int(count) < 1:
            raise Invalid(f"'{text}': expected rules of a pattern and a count, as 2026-1[12].*,16;.*,4; found '{rule}'")
        rules.append((pattern.strip(), int(count)))
    return tuple(rules)
