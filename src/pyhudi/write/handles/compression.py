"""How Parquet is compressed: codecs as options name them, and as pyarrow does."""

from typing import Final, Literal, TypeAlias, cast

from pyhudi.options.values import OptionValues

Compression: TypeAlias = Literal["zstd", "gzip", "snappy", "lz4", "none"]

_NAMED: Final = ("zstd", "gzip", "snappy", "lz4", "uncompressed")


def chosen_compression(options: OptionValues, default: Compression) -> Compression:
    """The codec that the options name, or the default. Raises: Invalid for one that is none."""
    named = options.choice("hoodie.parquet.compression.codec", "", _NAMED)
    return cast(Compression, "none" if named == "uncompressed" else named or default)
