"""The entries about record keys in a base file's footer, beside Parquet's own metadata."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, cast, get_args

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.format.keys.bloom import BloomFilter, BloomKind

BLOOM_FILTER = "org.apache.hudi.bloomfilter"
BLOOM_FILTER_OLD = "com.uber.hoodie.bloomfilter"
BLOOM_KIND = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"

_SURROGATES_END = "\ue000"


@dataclass(frozen=True, slots=True)
class KeyFooter:
    """The entries as they are stored. `bloom_kind`: SIMPLE if none is stored. Spec: format/layout.md section 7."""

    bloom_text: bytes | None
    bloom_kind: str
    key_range: tuple[str, str] | None

    @classmethod
    def parse(cls, metadata: Mapping[bytes, bytes] | None) -> Self:
        """The entries among a footer's metadata. The range counts only if both of its ends are there and are text."""
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
        """Whether the range holds in the order of UTF-8 bytes, whichever writer wrote it.

        Seen: record writers order keys by UTF-16 units, as Java compares; row writers order keys by bytes. The two
        orders differ only if a character from U+E000 to U+FFFF is compared with one beyond U+FFFF. A range whose ends
        have no such characters means the same in both orders.
        """
        return self.key_range is not None and is_bytewise(self.key_range)

    def decode_bloom(self, *, path: str) -> BloomFilter | None:
        """The filter; None if the footer has none.

        Raises: CorruptFile for a filter that does not decode; Unsupported for a kind that is not known.
        """
        if self.bloom_text is None:
            return None
        if self.bloom_kind not in get_args(BloomKind):
            expected = " or ".join(get_args(BloomKind))
            raise Unsupported(f"{path}: {BLOOM_KIND}='{self.bloom_kind}': expected {expected}")
        return BloomFilter.decode(cast(BloomKind, self.bloom_kind), self.bloom_text, path=f"{path}, Bloom filter")

    def usable_bloom(self, *, path: str) -> tuple[BloomFilter | None, str]:
        """The filter, and an empty text; or None, and the reason. A broken filter is no error, as filters only help."""
        try:
            bloom = self.decode_bloom(path=path)
        except (CorruptFile, Unsupported) as error:
            return None, str(error)
        return bloom, "" if bloom is not None else f"{path}: no Bloom filter"


def is_bytewise(ends: tuple[str, str]) -> bool:
    """Whether a range means the same in the order of UTF-8 bytes and in the order of UTF-16 units."""
    return all(max(end, default="") < _SURROGATES_END for end in ends)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
