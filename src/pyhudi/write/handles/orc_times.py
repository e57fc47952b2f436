"""Times that ORC files can hold so that they are read again."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.table.slices.base_files.zones import NANOSECOND_MILLIS, has_timestamp

_MICROS_MAX = (NANOSECOND_MILLIS - 1) * 1_000


def refuse_unreadable_times(rows: pa.Table, *, path: str) -> None:
    """Raises: Invalid for a time in these rows, in columns or within them, that PyArrow reads from no ORC file.

    PyArrow writes such times, and fails on the file once it reads it. A row that goes to a log is refused, too: no
    compaction could store it.
    """
    for field, column in zip(rows.schema, rows.columns, strict=True):
        for times in _timestamps(column.chunks) if has_timestamp(field.type) else ():
            ends = pc.min_max(pc.cast(times, pa.timestamp("us", times.type.tz)))
            for end in (ends["min"], ends["max"]):
                micros = end.cast(pa.int64()).as_py()
                if micros is not None and abs(micros) > _MICROS_MAX:
                    shown = end.cast(pa.timestamp("us")).cast(pa.string()).as_py()
                    raise Invalid(
                        f"{path}: column '{field.name}': expected times between 1677-09-22 and 2262-04-11, found "
                        f"'{shown}': PyArrow reads no others from ORC files; leave out these rows, or store them in a "
                        "table of Parquet files"
                    )


def _timestamps(arrays: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """The timestamps in these arrays, and within their values."""
    for array in arrays:
        kind = array.type
        if pa.types.is_timestamp(kind):
            yield array
        elif pa.types.is_struct(kind):
            yield from _timestamps(array.flatten())
        elif pa.types.is_list(kind):
            yield from _timestamps([array.flatten()])
        elif pa.types.is_map(kind):
            whole = pa.concat_arrays([array])  # a slice, or its keys and items would be those of its neighbours, too
            yield from _timestamps([whole.keys, whole.items])
