"""Files of a plan that conditions leave which are known only later, as an engine knows its query's filters."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.predicate.plain import plain_predicate
from pyhudi.table.prune.data_skipping import DataSkipping
from pyhudi.table.read.plan import plan_snapshot
from pyhudi.table.read.shown_columns import ShownColumns
from pyhudi.table.view.snapshot import Snapshot


@dataclass(frozen=True)
class Narrowing:
    """Asks the indexes of a table, for a plan of all of its rows that was made of a snapshot.

    `with_logs`: as in `plan_snapshot`. `open_indexes`: opens the indexes as they are now, None where there are none.
    """

    snapshot: Snapshot
    shown: ShownColumns
    with_logs: bool
    open_indexes: Callable[[], DataSkipping | None]

    def left_by(self, conditions: Sequence[str], *, has_times: bool) -> Collection[str] | None:
        """The paths of the planned files that may hold a row for which all conditions hold; None: all of them.

        `conditions`: Spark SQL texts over the stored columns. Columns that queries show otherwise are not asked for.
        `has_times`: whether times in the texts are of UTC.

        Cost: as `plan_snapshot`, without a request where no condition is plain, or where there are no indexes.
        Raises: CorruptFile for a damaged index. An index that has moved on since the snapshot leaves all files.
        """
        besides = {*self.shown.texts, *self.shown.from_path}
        fields = [field for field in self.snapshot.schema_with_meta if field.name not in besides]
        predicate = plain_predicate(conditions, pa.schema(fields), has_times=has_times)
        indexes = None if predicate is None else self.open_indexes()
        if predicate is None or indexes is None:
            return None
        plan = plan_snapshot(
            self.snapshot, schema=pa.schema([]), predicate=predicate, where=predicate.text, query="narrowed",
            shown=self.shown, with_logs=self.with_logs, skipping=indexes,
        )  # fmt: skip
        return frozenset(file.path for file in plan.files)
