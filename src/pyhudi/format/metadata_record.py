"""Records of the metadata table: their schema, and the ones that list partitions and files.

A record of the partition `files` maps the names of a data partition's files to their sizes; one more,
under a key of its own, lists the data partitions. A deleted entry is kept as a tombstone where it may
still have an older one to remove.

Spec: format/metadata-table.md sections 5, 6 and 9.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyhudi.errors import CorruptFile
from pyhudi.format.avro_container import BROKEN_BYTES, decode_record, encode_record
from pyhudi.format.avro_text import NAMESPACE, STRING, Json, field, mapping, optional, record, schema_text
from pyhudi.format.schema import FILE_NAME, META_FIELD_SCHEMAS

PARTITION_LIST_TYPE = 1
FILES_TYPE = 2

PARTITIONS_KEY = "__all_partitions__"
"""The key of the record that lists the data partitions."""

ROOT_PARTITION_KEY = "."
"""The key of a table without partitions, whose partition path is empty."""


class FileState(NamedTuple):
    """A file, or a partition (size 0), as a record of the metadata table states it."""

    size_bytes: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class FilesRecord:
    """What the metadata table says of the files of one partition, or of the partitions.

    `type`: `FILES_TYPE` or `PARTITION_LIST_TYPE`. `files`: names -> states, tombstones included.
    """

    type: int
    files: Mapping[str, FileState]

    @property
    def live(self) -> dict[str, int]:
        """Name -> size of the files that are there."""
        return {name: state.size_bytes for name, state in self.files.items() if not state.is_deleted}


def files_key(partition: str) -> str:
    """The key under which the metadata table keeps a data partition's files, and names it in its list."""
    return partition or ROOT_PARTITION_KEY


def partition_of_key(key: str) -> str:
    """The data partition's path; the inverse of `files_key`."""
    return "" if key == ROOT_PARTITION_KEY else key


def encode_files_record(files_record: FilesRecord, *, base_file_name: str | None = None) -> bytes:
    """The record's Avro binary under `METADATA_RECORD_SCHEMA`.

    `base_file_name`: the HFile it goes into; None in a log block. Seen: 1.0.2 keeps the key outside of the
    record and fills no meta field but the file name, that of a base file, in base files.
    """
    assert files_record.type in (FILES_TYPE, PARTITION_LIST_TYPE)
    files = {name: {"size": size, "isDeleted": gone} for name, (size, gone) in files_record.files.items()}
    stored: dict[str, object] = {FILE_NAME: base_file_name, "key": "", "type": files_record.type}
    return encode_record(METADATA_RECORD_SCHEMA, {**stored, "filesystemMetadata": files})


def decode_files_record(value: bytes, schema_text: str, *, path: str = "metadata table") -> FilesRecord:
    """The record of an Avro binary under the schema it was written with; `path` is for messages.

    Raises: CorruptFile for bytes that break the schema, and for a record of another metadata partition.
    """
    try:
        stored = decode_record(value, schema_text)
    except BROKEN_BYTES as error:
        found = f"{type(error).__name__}: {error}"[:200]
        raise CorruptFile(path, 0, expected="one HoodieMetadataRecord", found=found) from error
    kind, files = stored.get("type"), stored.get("filesystemMetadata")
    if kind not in (FILES_TYPE, PARTITION_LIST_TYPE) or not isinstance(files, dict | None):
        raise CorruptFile(path, 0, expected="a record of type 1 or 2 with files", found=f"type {kind!r}")
    try:
        states = {name: FileState(int(info["size"]), bool(info["isDeleted"])) for name, info in (files or {}).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(path, 0, expected="size and isDeleted of each file", found=f"{error!r}") from error
    assert isinstance(kind, int)
    return FilesRecord(kind, states)


def merge_files_records(older: FilesRecord, newer: FilesRecord) -> FilesRecord:
    """What two records of one key say together. Fold from the base file's record on, in log order.

    A live entry takes the larger of both sizes (logs of table version 6 grow); a deleted one removes an
    older live one, and stays a tombstone where there was none.

    Spec: format/metadata-table.md section 9.
    """
    merged = dict(older.files)
    for name, state in newer.files.items():
        before = merged.get(name)
        if before is None or before.is_deleted:
            merged[name] = state
        elif state.is_deleted:
            del merged[name]
        else:
            merged[name] = FileState(max(before.size_bytes, state.size_bytes), is_deleted=False)
    return FilesRecord(newer.type, merged)


# The schema.


def _wrapper(name: str, holding: str, kind: Json) -> Json:
    doc = f"A record wrapping {holding} type to be able to be used it w/in Avro's Union"
    return record(name, field("value", kind), doc=doc)


_TIME: Json = {"type": "long", "logicalType": "time-micros"}
_DECIMAL: Json = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
_WRAPPERS: dict[str, Json] = {
    name: _wrapper(name, holding, kind)
    for name, holding, kind in (
        ("BooleanWrapper", "boolean", "boolean"),
        ("IntWrapper", "int", "int"),
        ("LongWrapper", "long", "long"),
        ("FloatWrapper", "float", "float"),
        ("DoubleWrapper", "double", "double"),
        ("BytesWrapper", "bytes", "bytes"),
        ("StringWrapper", "string", STRING),
        ("DateWrapper", "Date logical", "int"),
        ("DecimalWrapper", "Decimal logical", _DECIMAL),
        ("TimeMicrosWrapper", "Time-micros logical", _TIME),
        ("TimestampMicrosWrapper", "Timestamp-micros logical", "long"),
        ("LocalDateWrapper", "Local Date", "int"),
    )
}

_FILE_INFO = record(
    "HoodieMetadataFileInfo",
    field("size", "long", doc="Size of the file"),
    field("isDeleted", "boolean", doc="True if this file has been deleted"),
)
_BLOOM_FILTER = record(
    "HoodieMetadataBloomFilter",
    field("type", STRING, doc="Bloom filter type code"),
    field("timestamp", STRING, doc="Instant timestamp when this metadata was created/updated"),
    field("bloomFilter", "bytes", doc="Bloom filter binary byte array"),
    field("isDeleted", "boolean", doc="Bloom filter entry valid/deleted flag"),
    doc="Data file bloom filter details",
)
_RANGE_DOC = "Based on user data table schema, we can convert"
_OF_VERSION_9: dict[str, Json] = {
    "ArrayWrapper": record(
        "ArrayWrapper",
        optional(
            "wrappedValues",
            {"type": "array", "items": ["null", *_WRAPPERS]},
            doc="An array where each element is one of the supported wrapper types.",
        ),
        doc="A record containing a list of wrapped values.",
    ),
}
_VALUE_TYPE = optional(
    "valueType",
    record(
        "HoodieValueTypeInfo",
        field("typeOrdinal", "int", doc="Enum type ordinal representing the value type"),
        optional("additionalInfo", STRING, doc="Optional additional information about the value type"),
    ),
    doc="Value type information containing enum ordinal and optional additional information",
)


def _column_stats(wrappers: Mapping[str, Json], *more: Json) -> Json:
    return record(
        "HoodieMetadataColumnStats",
        optional("fileName", STRING, doc="File name for which this column statistics applies"),
        optional("columnName", STRING, doc="Column name for which this column statistics applies"),
        field(
            "minValue",
            ["null", *wrappers.values()],
            doc=f"Minimum value in the range. {_RANGE_DOC} this to appropriate type",
            default=None,
        ),
        field(
            "maxValue",
            ["null", *wrappers],
            doc=f"Maximum value in the range. {_RANGE_DOC} it to appropriate type",
            default=None,
        ),
        optional("valueCount", "long", doc="Total count of values"),
        optional("nullCount", "long", doc="Total count of null values"),
        optional("totalSize", "long", doc="Total storage size on disk"),
        optional("totalUncompressedSize", "long", doc="Total uncompressed storage size on disk"),
        field("isDeleted", "boolean", doc="Column range entry valid/deleted flag"),
        field(
            "isTightBound",
            "boolean",
            doc="Whether the min/max range of a column is tight bound or not",
            default=False,
        ),
        *more,
        doc="Data file column statistics",
    )


_PIECES_DOC = (
    "A UUID based fileId is stored as 3 pieces in RLI (fileIdHighBits, fileIdLowBits and fileIndex). \n"
    "FileID format is {UUID}-{fileIndex}."
)
_RECORD_INDEX = record(
    "HoodieRecordIndexInfo",
    optional("partitionName", STRING, doc="Refers to the partition name the record belongs to"),
    optional(
        "fileIdHighBits",
        "long",
        doc=f"Refers to high 64 bits if the fileId is based on UUID format. \n{_PIECES_DOC}",
    ),
    optional(
        "fileIdLowBits",
        "long",
        doc=f"Refers to low 64 bits if the fileId is based on UUID format. \n{_PIECES_DOC}",
    ),
    optional(
        "fileIndex",
        "int",
        doc="Index representing file index which is used to re-construct UUID based fileID. Applicable when "
        f"the fileId is based on UUID format. \n{_PIECES_DOC}",
    ),
    optional(
        "fileId",
        STRING,
        doc="Represents fileId of the location where record belongs to. When the encoding is 1, fileID is "
        "stored in raw string format.",
    ),
    optional(
        "instantTime",
        "long",
        doc="Epoch time in millisecond representing the commit time at which record was added",
    ),
    field(
        "fileIdEncoding",
        "int",
        doc="Represents fileId encoding. Possible values are 0 and 1. O represents UUID based fileID, and 1 "
        "represents raw string format of the fileId. \nWhen the encoding is 0, reader can deduce fileID from "
        "fileIdLowBits, fileIdHighBits and fileIndex.",
        default=0,
    ),
    optional(
        "position",
        "long",
        doc="Represents position of record within a file group for easier access. It will be used for index lookup.",
    ),
)


def _metadata_record(column_stats: Json) -> str:
    return schema_text(
        record(
            "HoodieMetadataRecord",
            *META_FIELD_SCHEMAS,
            field("key", STRING),
            field("type", "int", doc="Type of the metadata record"),
            field(
                "filesystemMetadata",
                ["null", mapping(_FILE_INFO)],
                doc="Contains information about partitions and files within the dataset",
            ),
            optional(
                "BloomFilterMetadata",
                _BLOOM_FILTER,
                doc="Metadata Index of bloom filters for all data files in the user table",
            ),
            optional(
                "ColumnStatsMetadata",
                column_stats,
                doc="Metadata Index of column statistics for all data files in the user table",
            ),
            optional(
                "recordIndexMetadata",
                _RECORD_INDEX,
                doc="Metadata Index that contains information about record keys and their location in the dataset",
            ),
            optional(
                "SecondaryIndexMetadata",
                record(
                    "HoodieSecondaryIndexInfo",
                    field("isDeleted", "boolean", doc="True if this entry has been deleted"),
                ),
                doc="Metadata Index that contains information about secondary keys and the corresponding record "
                "keys in the dataset",
            ),
            doc="A record saved within the Metadata Table",
            namespace=NAMESPACE,
        )
    )


METADATA_RECORD_SCHEMA = _metadata_record(_column_stats(_WRAPPERS))
"""The schema of every record of the metadata table of version 8, with the text of 1.0.2 (0.15.0 lacks
`SecondaryIndexMetadata`, `isTightBound` and `position`). Commits of the metadata table state it without the meta
fields."""

METADATA_RECORD_SCHEMAS = {
    8: METADATA_RECORD_SCHEMA,
    9: _metadata_record(_column_stats({**_WRAPPERS, **_OF_VERSION_9}, _VALUE_TYPE)),
}
"""By table version; that of 9 with the text of 1.2.0. Records of files and partitions are the same bytes under both."""
