"""How logs are written: options as typed settings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, TypeAlias, get_args

from pyhudi.options.values import OptionValues, count, flag
from pyhudi.versions import LogContent, TableVersion
from pyhudi.write.handles.compression import Compression, chosen_compression

BlockFormat: TypeAlias = Literal["avro", "parquet", "hfile"]

_BLOCK_FORMAT: Final = "hoodie.logfile.data.block.format"

SMALL_BLOCK_BYTES: Final = 64 * 1024
"""Bytes of a block's rows as Arrow holds them."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of writes to the logs of merge-on-read tables. Sizes are bytes. Where no reason is given, the default is
    Apache Hudi's.

    `block_format`: None: Parquet, which is written and read by columns, and Avro for blocks of less than
    `SMALL_BLOCK_BYTES`. Opening a Parquet block takes as long as decoding a thousand rows of Avro, and readers decode
    many small Avro blocks as one. Apache Hudi takes Avro by default.
    `file_size_max_bytes`: a log that has reached this size is ended, and another one begun.
    `block_size_max_bytes`: of rows as Arrow holds them. It bounds what a writer holds encoded.
    `writes_positions`: blocks say where in the base file their rows stand, if the index has found that out.
    `small_block_compression`: of Parquet blocks of less than `SMALL_BLOCK_BYTES`, if Parquet is asked for. There zstd
    takes three times as long for as many bytes.
    `content`: the form of the blocks' content, which the table's version says.
    `small_groups_max`: how many of a partition's small file groups without logs take new rows, the smallest first.
    """

    block_format: BlockFormat | None = None
    file_size_max_bytes: int = count("hoodie.logfile.max.size", 1_073_741_824)
    block_size_max_bytes: int = count("hoodie.logfile.data.block.max.size", 268_435_456)
    writes_positions: bool = flag("hoodie.write.record.positions", True)
    small_block_compression: Compression = "snappy"
    small_groups_max: int = count("hoodie.merge.small.file.group.candidates.limit", 1, least=0)
    content: LogContent = LogContent.AVRO

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a value that cannot be one."""
        o, d = OptionValues(options), cls()
        formats = get_args(BlockFormat)
        named = options.get(_BLOCK_FORMAT, "").strip()
        return cls(
            **o.fields(cls),
            block_format=o.choice(_BLOCK_FORMAT, formats[0], formats) if named else d.block_format,
            small_block_compression=chosen_compression(o, d.small_block_compression),
        )

    def of_version(self, version: TableVersion) -> Self:
        """These settings, as far as tables of a version allow them."""
        positions = self.writes_positions and version.has_log_positions
        return replace(self, writes_positions=positions, content=version.log_content)
