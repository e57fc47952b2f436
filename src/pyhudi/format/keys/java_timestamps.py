"""Timestamps in keys and paths as a date and a time, in UTC. Each cuts what is finer than it prints."""

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid

FIRST_GREGORIAN_MS = -12_219_292_800_000
"""15 October 1582, before which Java's `Timestamp` counts days by another calendar."""


def java_timestamp_texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """As `java.sql.Timestamp.toString` prints milliseconds: `2026-01-10 08:30:00.0`.

    Spec: format/layout.md section 5.1. Raises: Invalid for times before 15 October 1582.
    """
    return pc.replace_substring_regex(_texts(column, name), r"(\.[0-9]+?)0*$", r"\1")


def sql_timestamp_texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """As Apache Hudi's SQL spells a partition: `2026-01-10 08:30:00`. Seen: 1.2.0. Raises: as above."""
    return pc.utf8_slice_codeunits(_texts(column, name), 0, len("2026-01-10 08:30:00"))


def _texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Each with three digits of a second."""
    micros = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    millis = pc.divide(micros, 1_000)
    if (pc.min(millis).as_py() or 0) < FIRST_GREGORIAN_MS:
        raise Invalid(
            f"column '{name}': expected timestamps from 15 October 1582 on, found an earlier one; as text in a key "
            "they have no spelling that every writer agrees on"
        )
    return millis.cast(pa.timestamp("ms")).cast(pa.string())
