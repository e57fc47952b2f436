"""How Parquet is compressed: codecs as options name them, and as pyarrow does."""

from typing import Final, Literal, TypeAlias, TypeVar, cast

from pyhudi.options.values import OptionValues

Compression: TypeAlias = Literal["zstd", "gzip", "snappy", "lz4", "none"]

_NAMED: Final = ("zstd", "gzip", "snappy", "lz4", "uncompressed")


Default = TypeVar("Default", Compression, None)


def chosen_compression(options: OptionValues, default: Default) -> Compression | Default:
    """The codec that the options name, or the default. Raises: Invalid for one that is none."""
    named = options.choice("hoodie.parquet.compression.codec", "", _NAMED)
    return cast(Compression, "none" if named == "uncompressed" else named) if named else default
