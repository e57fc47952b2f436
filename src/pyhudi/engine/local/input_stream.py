"""A caller's stream of batches, read so that it either ends well or says what is wrong with it."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from pyhudi.errors import HudiError, Invalid
from pyhudi.format.schema.arrow_types import canonical_arrow


def input_batches(stream: pa.RecordBatchReader, *, is_own: bool = False) -> Iterator[pa.RecordBatch]:
    """The batches of a stream. Each has the columns that the stream declares, in the same order.

    `is_own`: pyhudi makes the rows. An error of theirs is no fault of the caller's, and passes as it is.

    Seen: PyArrow 26 hands batches of other columns on as they are, and takes their bytes for those of the declared
    types where the stream crosses its C interface.
    Raises: Invalid for a batch of other columns, and where the stream fails, with its error as the cause; a HudiError
    of the stream as it is. What is no `Exception`, such as a KeyboardInterrupt, passes.
    """
    number = 0
    while True:
        try:
            batch = stream.read_next_batch()
        except StopIteration:
            return
        except HudiError:
            raise
        except Exception as error:
            if is_own:
                raise
            raise stream_failed(error) from error
        number += 1
        if batch.schema.names != stream.schema.names or batch.schema.types != stream.schema.types:
            _refuse_others(batch.schema, stream.schema, number)
        yield batch


def stream_failed(error: Exception) -> Invalid:
    """What a caller is told whose stream failed."""
    return Invalid(
        "the input could not be read to its end, and nothing was written: "
        f"{type(error).__name__}: {error}; mend its source and hand in a new stream"
    )


def _refuse_others(found: pa.Schema, declared: pa.Schema, number: int) -> None:
    """Raises: Invalid for columns that a table would not keep as the declared ones."""
    if found.names == declared.names:
        with suppress(Invalid):  # a type that no table has
            if canonical_arrow(found).types == canonical_arrow(declared).types:
                return
    raise Invalid(
        f"input: batch {number:,}: expected the columns that the stream declares ({_shown(declared)}), found "
        f"({_shown(found)}); nothing was written; declare the schema that every batch has, or cast the batches"
    )


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
