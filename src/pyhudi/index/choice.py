"""Which index a name stands for."""

from typing import Literal, TypeAlias

from pyhudi.index.base_files import BaseFileIndex
from pyhudi.index.bloom import BloomSearch
from pyhudi.index.hits import Index
from pyhudi.index.simple import SimpleSearch

FileLookupType: TypeAlias = Literal["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"]
"""Indexes that look keys up in base files, or in what the metadata table says of those."""

RecordLookupType: TypeAlias = Literal["RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"]
"""Indexes that look keys up in the metadata table's record index. The first two are one: the older name, and today's;
the third is kept by partition."""

LookupType: TypeAlias = Literal[FileLookupType, RecordLookupType]
"""Indexes that look keys up."""

IndexType: TypeAlias = Literal[LookupType, "BUCKET"]
"""Indexes that writes can use, as `hoodie.index.type` names them; by buckets nothing is looked up."""


def is_global_index(kind: IndexType) -> bool:
    """Whether, by an index, a record key is one row of the whole table, and not only of its partition."""
    return kind.startswith("GLOBAL_") or kind == "RECORD_INDEX"


def choose_index(kind: FileLookupType, *, prunes_by_range: bool) -> Index:
    """The index of a name. `prunes_by_range`: of Bloom indexes, whether key ranges are looked at."""
    search = BloomSearch(prunes_by_range) if kind in ("BLOOM", "GLOBAL_BLOOM") else SimpleSearch()
    return BaseFileIndex(search, is_global=is_global_index(kind))
