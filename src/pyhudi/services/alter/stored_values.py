"""Whether the stored values of columns fit the types that the columns are to get.

The rows are read as they will be read with the new types, so that what does not fit is found by the reader itself.
"""

from dataclasses import replace

import pyarrow as pa

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.schema.alterations import in_doubt
from pyhudi.format.schema.history import NumberedSchema, SchemaHistory
from pyhudi.table.read.files import read_plan_batches
from pyhudi.table.read.plan import plan_snapshot, select_columns
from pyhudi.table.view.snapshot import PlannedColumns, Snapshot
from pyhudi.write.stated_schema import UNREQUESTED


def refuse_unfit_values(snapshot: Snapshot, before: NumberedSchema, planned: NumberedSchema, text: str) -> None:
    """Read the columns whose values may not fit. `before`: the columns of now. `text`: the Avro schema of `planned`.

    Memory: as a scan of these columns, file after file.
    Raises: Invalid for the first file with a value that does not fit.
    """
    names = in_doubt(before, planned)
    if not names:
        return

    history = (snapshot.history or SchemaHistory((before,))).with_newest(replace(planned, since=UNREQUESTED))
    then = replace(snapshot, planned=PlannedColumns(text, history))
    schema = select_columns(then, names, meta_fields=False)
    plan = plan_snapshot(then, schema=schema, predicate=None, where=None, query="snapshot")
    try:
        for _ in read_plan_batches(snapshot.storage, plan):
            pass
    except CorruptFile as error:
        if not isinstance(error.__cause__, pa.ArrowInvalid | pa.ArrowNotImplementedError):
            raise
        raise Invalid(
            f"table '{snapshot.config.name}': a stored value does not fit the new type of its column: {error.path}: "
            f"expected {error.expected}, found {error.found}; change such values, or add a column of the new type. "
            "Where a log holds newer rows, compact the table first"
        ) from error
