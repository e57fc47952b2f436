"""The merge of `FirstValueAvroPayload`: of rows with the same ordering value the first one stays."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.latest import incoming_wins
from pyhudi.merge.ordering import ordering_fields, read_ordering


@dataclass(frozen=True, slots=True)
class FirstValue:
    """A `RecordMerger`. The newer row wins if its ordering value is greater, or the older row has none.

    `ordering`: as in `MergeRules`; none: the newer row wins.
    """

    ordering: tuple[str, ...]

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        if not self.ordering:
            return newer
        fields = ordering_fields(newer.schema, self.ordering)
        before, after = (read_ordering(rows, self.ordering, fields) for rows in (older, newer))
        stays = pc.and_(pa.array(incoming_wins(before, after)), pc.is_valid(before[0]))
        columns = [pc.if_else(stays, *pair) for pair in zip(older.columns, newer.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=newer.schema)
