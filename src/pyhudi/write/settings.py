"""How writes are carried out: options as typed settings, each with its unit, its default and the reason for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias, get_args

from pyhudi.errors import Invalid
from pyhudi.model.table_facts import parse_flag

Compression: TypeAlias = Literal["zstd", "gzip", "snappy", "lz4", "uncompressed"]
BloomKind: TypeAlias = Literal["DYNAMIC_V0", "SIMPLE"]
DuplicatePolicy: TypeAlias = Literal["none", "drop", "fail"]
IndexType: TypeAlias = Literal["SIMPLE"]
SortMode: TypeAlias = Literal["NONE"]

COMMIT_METADATA_PREFIX: Final = "hoodie.datasource.write.commitmeta.key.prefix"


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings of writes to copy-on-write tables. Sizes are bytes; defaults are Apache Hudi's where none is argued.

    `compression`: zstd, as fast as snappy here and a third smaller.
    `file_size_max_bytes`: 120 MiB, a file that one task rewrites in seconds.
    `small_file_limit_bytes`: files below it take new rows first; 0: none does.
    `row_group_size_bytes`: counts Arrow bytes in memory, so it bounds what a writer holds.
    `record_size_estimate_bytes`: of a stored row, until an earlier commit tells.
    `bloom_false_positive_rate`: 1e-9, so that a hit nearly always is one.
    `combine_before_insert`: off, since an insert promises no uniqueness and then needs no sort.
    `insert_duplicates`: rows whose key is stored already: kept, dropped, or an error.
    `metadata_deltacommits_max`: delta commits of the metadata table after which it is compacted.
    `heartbeat_misses`: beats of `heartbeat_interval_ms` that may fail before others count the writer as dead.
    `is_logical_timestamp_consistent`: timestamps in keys as text, not as numbers; off, as tables there are.
    `commit_metadata_prefix`: options that begin so go into the commit; empty: none do.
    """

    compression: Compression = "zstd"
    file_size_max_bytes: int = 125_829_120
    small_file_limit_bytes: int = 104_857_600
    row_group_size_bytes: int = 125_829_120
    page_size_bytes: int = 1_048_576
    record_size_estimate_bytes: int = 1_024
    bloom_enabled: bool = True
    bloom_kind: BloomKind = "DYNAMIC_V0"
    bloom_entries: int = 60_000
    bloom_false_positive_rate: float = 1e-9
    bloom_entries_max: int = 100_000
    combine_before_insert: bool = False
    combine_before_upsert: bool = True
    combine_before_delete: bool = True
    insert_duplicates: DuplicatePolicy = "none"
    index_type: IndexType = "SIMPLE"
    bulk_insert_sort_mode: SortMode = "NONE"
    metadata_enabled: bool = True
    metadata_deltacommits_max: int = 10
    allow_empty_commit: bool = True
    commit_metadata_prefix: str = "_"
    is_logical_timestamp_consistent: bool = False
    heartbeat_interval_ms: int = 60_000
    heartbeat_misses: int = 2

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for; options of other concerns are left alone.

        Raises: Invalid for a value that cannot be one, naming the option, what was found and what is expected.
        """
        o = _Options(options)
        return cls(
            compression=o.choice("hoodie.parquet.compression.codec", Compression, cls.of("compression")),
            file_size_max_bytes=o.count("hoodie.parquet.max.file.size", cls.of("file_size_max_bytes")),
        )
