"""The schema of the metadata table's records, `HoodieMetadataRecord`, as each table version writes it.

The text equals Apache Hudi's text to the byte. HFiles and log blocks state this text; commits of the metadata table
state it without the meta fields. A record is read under the text that its own file states.

Spec: format/metadata-table.md section 6. Seen: 0.13.1 (version 5), 0.15.0 (6), 1.0.2 (8), 1.2.0 (9).
"""

from collections.abc import Sequence
from typing import Final

from pyhudi.format.avro.schema_text import NAMESPACE, STRING, Json, field, mapping, optional, record, schema_text
from pyhudi.format.schema.conversion import META_FIELD_SCHEMAS


def _wrapper(name: str, holding: str, kind: Json) -> Json:
    doc = f"A record wrapping {holding} type to be able to be used it w/in Avro's Union"
    return record(name, field("value", kind), doc=doc)


_TIME: Json = {"type": "long", "logicalType": "time-micros"}
_DECIMAL: Json = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
_WRAPPERS: Final[dict[str, Json]] = {
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
        ("LocalDateWrapper", "Local Date", "int"),  # since 1.0
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
_ARRAY_WRAPPER = record(
    "ArrayWrapper",
    optional(
        "wrappedValues",
        {"type": "array", "items": ["null", *_WRAPPERS]},
        doc="An array where each element is one of the supported wrapper types.",
    ),
    doc="A record containing a list of wrapped values.",
)
_VALUE_TYPE = optional(
    "valueType",
    record(
        "HoodieValueTypeInfo",
        field("typeOrdinal", "int", doc="Enum type ordinal representing the value type"),
        optional("additionalInfo", STRING, doc="Optional additional information about the value type"),
    ),
    doc="Value type information containing enum ordinal and optional additional information",
)


_IS_TIGHT_BOUND = field(
    "isTightBound", "boolean", doc="Whether the min/max range of a column is tight bound or not", default=False
)


def _column_stats(wrappers: Sequence[Json], *more: Json) -> Json:
    names: list[Json] = [wrapper["name"] for wrapper in wrappers if isinstance(wrapper, dict)]
    return record(
        "HoodieMetadataColumnStats",
        optional("fileName", STRING, doc="File name for which this column statistics applies"),
        optional("columnName", STRING, doc="Column name for which this column statistics applies"),
        field(
            "minValue",
            ["null", *wrappers],
            doc=f"Minimum value in the range. {_RANGE_DOC} this to appropriate type",
            default=None,
        ),
        field(
            "maxValue",
            ["null", *names],
            doc=f"Maximum value in the range. {_RANGE_DOC} it to appropriate type",
            default=None,
        ),
        optional("valueCount", "long", doc="Total count of values"),
        optional("nullCount", "long", doc="Total count of null values"),
        optional("totalSize", "long", doc="Total storage size on disk"),
        optional("totalUncompressedSize", "long", doc="Total uncompressed storage size on disk"),
        field("isDeleted", "boolean", doc="Column range entry valid/deleted flag"),
        *more,
        doc="Data file column statistics",
    )


_PIECES_DOC = (
    "A UUID based fileId is stored as 3 pieces in RLI (fileIdHighBits, fileIdLowBits and fileIndex). \n"
    "FileID format is {UUID}-{fileIndex}."
)
_POSITION = optional(
    "position",
    "long",
    doc="Represents position of record within a file group for easier access. It will be used for index lookup.",
)


def _record_index(pieces: str, *more: Json) -> Json:
    """`pieces`: the parts of a file id, as the `doc` text names them. Seen: 0.15.0 names one part twice."""
    return record(
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
            f"{pieces} and fileIndex.",
            default=0,
        ),
        *more,
    )


_SECONDARY_INDEX = optional(
    "SecondaryIndexMetadata",
    record(
        "HoodieSecondaryIndexInfo",
        field("isDeleted", "boolean", doc="True if this entry has been deleted"),
    ),
    doc="Metadata Index that contains information about secondary keys and the corresponding record "
    "keys in the dataset",
)


def _record_index_field(info: Json) -> Json:
    doc = "Metadata Index that contains information about record keys and their location in the dataset"
    return optional("recordIndexMetadata", info, doc=doc)


def _metadata_record(column_stats: Json, *more: Json) -> str:
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
            *more,
            doc="A record saved within the Metadata Table",
            namespace=NAMESPACE,
        )
    )


_WRAPPERS_OF_8 = list(_WRAPPERS.values())
_WRAPPERS_OF_6 = _WRAPPERS_OF_8[:-1]
_RECORD_INDEX_OF_6 = _record_index_field(_record_index("fileIdLowBits, fileIdLowBits"))
_RECORD_INDEX_OF_8 = _record_index_field(_record_index("fileIdLowBits, fileIdHighBits", _POSITION))

METADATA_RECORD_SCHEMAS: Final = {
    5: _metadata_record(_column_stats(_WRAPPERS_OF_6)),
    6: _metadata_record(_column_stats(_WRAPPERS_OF_6), _RECORD_INDEX_OF_6),
    8: _metadata_record(_column_stats(_WRAPPERS_OF_8, _IS_TIGHT_BOUND), _RECORD_INDEX_OF_8, _SECONDARY_INDEX),
    9: _metadata_record(
        _column_stats([*_WRAPPERS_OF_8, _ARRAY_WRAPPER], _IS_TIGHT_BOUND, _VALUE_TYPE),
        _RECORD_INDEX_OF_8,
        _SECONDARY_INDEX,
    ),
}
"""The schemas by table version, with meta fields. Records of files and partitions have the same bytes in 8 and 9."""

METADATA_RECORD_SCHEMA: Final = METADATA_RECORD_SCHEMAS[8]
