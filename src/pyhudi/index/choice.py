"""Which index a name stands for."""

from typing import Literal, TypeAlias, assert_never

from pyhudi.index.base_files import BaseFileIndex
from pyhudi.index.bloom import BloomSearch
from pyhudi.index.hits import Index
from pyhudi.index.simple import SimpleSearch

LookupType: TypeAlias = Literal["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"]
"""Indexes that look keys up."""

IndexType: TypeAlias = Literal[LookupType, "BUCKET"]
"""Indexes that writes can use, as `hoodie.index.type` names them; by buckets nothing is looked up."""


def choose_index(kind: LookupType, *, prunes_by_range: bool) -> Index:
    """The index of a name. `prunes_by_range`: of Bloom indexes, whether key ranges are looked at."""
    match kind:
        case "SIMPLE" | "GLOBAL_SIMPLE":
            return BaseFileIndex(SimpleSearch(), is_global=kind == "GLOBAL_SIMPLE")
        case "BLOOM" | "GLOBAL_BLOOM":
            return BaseFileIndex(BloomSearch(prunes_by_range), is_global=kind == "GLOBAL_BLOOM")
        case _:
            assert_never(kind)
