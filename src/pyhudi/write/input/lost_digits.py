"""A warning where an input turns a column of integers into floating point, which holds fewer of their digits.

Apache Hudi takes such an input, and so do we. Often it is a mistake: pandas makes floats of integers where one is
missing.
"""

import logging

import pyarrow as pa

log = logging.getLogger("pyhudi")

_EXACT_BITS = {pa.float32(): 24, pa.float64(): 53}


def tell_of_lost_digits(before: pa.Schema, after: pa.Schema, *, table_name: str) -> None:
    """Log a warning for each column whose stored values lose digits by the change of its type."""
    for field in before:
        at = after.get_field_index(field.name)
        bits = _EXACT_BITS.get(after.field(at).type) if at >= 0 else None
        if bits is not None and pa.types.is_integer(field.type) and field.type.bit_width > bits:
            log.warning(
                "table '%s': this input turns column '%s' from %s into %s for good: numbers beyond %s lose digits, "
                "those that are stored, too; if that is not meant, cast the column of the input to %s",
                table_name, field.name, field.type, after.field(at).type, f"{2**bits:,}", field.type,
            )  # fmt: skip
