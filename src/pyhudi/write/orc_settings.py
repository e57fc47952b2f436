"""How ORC base files are written: options as typed settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, get_args

from pyhudi.options.values import OptionValues, choice, count

OrcCompression: TypeAlias = Literal["ZLIB", "NONE", "SNAPPY", "LZ4", "ZSTD"]


@dataclass(frozen=True, slots=True)
class OrcSettings:
    """Defaults are Apache Hudi's. Units: bytes. `stripe_size_bytes`: before compression."""

    compression: OrcCompression = choice("hoodie.orc.compression.codec", "ZLIB", get_args(OrcCompression))
    stripe_size_bytes: int = count("hoodie.orc.stripe.size", 67_108_864)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a value that cannot be one."""
        return cls(**OptionValues(options).fields(cls))

    @property
    def codec(self) -> str:
        """As PyArrow names it."""
        return "uncompressed" if self.compression == "NONE" else self.compression.lower()
