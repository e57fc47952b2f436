"""The names of indexes, and the index for a name."""

from typing import Literal, TypeAlias

from pyhudi.index.base_files import BaseFileIndex
from pyhudi.index.bloom import BloomSearch
from pyhudi.index.hits import Index
from pyhudi.index.simple import SimpleSearch
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten

FileLookupType: TypeAlias = Literal["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"]
"""Indexes that look keys up in base files, or in the metadata table's statistics of base files."""

RecordLookupType: TypeAlias = Literal["RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"]
"""Indexes that look keys up in the metadata table's record index. The first two are the older and the newer name of
one index; the third is kept by partition."""

LookupType: TypeAlias = Literal[FileLookupType, RecordLookupType]
"""Indexes that look keys up."""

IndexType: TypeAlias = Literal[LookupType, "BUCKET"]
"""Indexes that writes can use, as `hoodie.index.type` names them. The bucket index needs no look-up."""


def is_global_index(kind: IndexType) -> bool:
    """Whether, with this index, a record key has one row in the whole table, and not one in each partition."""
    return kind.startswith("GLOBAL_") or kind == "RECORD_INDEX"


def choose_index(kind: FileLookupType, as_written: AsWritten = TODAY, *, prunes_by_range: bool) -> Index:
    """The index for a name. `prunes_by_range`: whether a Bloom index uses key ranges."""
    is_bloom = kind in ("BLOOM", "GLOBAL_BLOOM")
    search = BloomSearch(prunes_by_range, as_written=as_written) if is_bloom else SimpleSearch(as_written)
    return BaseFileIndex(search, is_global=is_global_index(kind))
