"""What the footer of a base file says about its record keys: entries beside Parquet's own metadata."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, cast, get_args

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.bloom import BloomFilter, BloomKind

BLOOM_FILTER = "org.apache.hudi.bloomfilter"
BLOOM_FILTER_OLD = "com.uber.hoodie.bloomfilter"
BLOOM_KIND = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"

_SURROGATES_END = "\ue000"


@dataclass(frozen=True, slots=True)
class KeyFooter:
    """The entries as they stand. `bloom_kind` where the footer names none: SIMPLE. Spec: format/layout.md section 7."""

    bloom_text: bytes | None
    bloom_kind: str
    key_range: tuple[str, str] | None

    @classmethod
    def parse(cls, metadata: Mapping[bytes, bytes] | None) -> Self:
        """A range counts only if both ends are there and are text."""
        entries = metadata or {}
        ends = [_text(entries.get(name.encode())) for name in (MIN_KEY, MAX_KEY)]
        low, high = ends
        return cls(
            bloom_text=entries.get(BLOOM_FILTER.encode(), entries.get(BLOOM_FILTER_OLD.encode())),
            bloom_kind=_text(entries.get(BLOOM_KIND.encode())) or "SIMPLE",
            key_range=(low, high) if low is not None and high is not None else None,
        )

    @property
    def has_bytewise_range(self) -> bool:
        """Whether the range holds in the order of UTF-8 bytes, whoever wrote it.

        Seen: record writers order keys by UTF-16 units, as Java compares, row writers by bytes. The two differ only
        where a character from U+E000 on meets one of a surrogate pair; ends without such characters mean the same
        in both.
        """
        return self.key_range is not None and is_bytewise(self.key_range)

    def decode_bloom(self, *, path: str) -> BloomFilter | None:
        """The filter; None where the footer has none.

        Raises: CorruptFile for one that does not decode; Unsupported for a kind that is not known.
        """
        if self.bloom_text is None:
            return None
        if self.bloom_kind not in get_args(BloomKind):
            expected = " or ".join(get_args(BloomKind))
            raise Unsupported(f"{path}: {BLOOM_KIND}='{self.bloom_kind}': expected {expected}")
        return BloomFilter.decode(cast(BloomKind, self.bloom_kind), self.bloom_text, path=f"{path}, Bloom filter")

    def usable_bloom(self, *, path: str) -> tuple[BloomFilter | None, str]:
        """The filter, or None and why there is none that can be used: a filter is only ever a help."""
        try:
            bloom = self.decode_bloom(path=path)
        except (CorruptFile, Unsupported) as error:
            return None, str(error)
        return bloom, "" if bloom is not None else f"{path}: no Bloom filter"


def is_bytewise(ends: tuple[str, str]) -> bool:
    """Whether a range means the same in the order of UTF-8 bytes and in that of UTF-16 units."""
    return all(max(end, default="") < _SURROGATES_END for end in ends)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
