"""The calls that change rows where they are: deletes, updates and merges. `HudiTable` has them from here."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pyhudi.api import frames, writes
from pyhudi.api.commit_callback import OnCommit
from pyhudi.api.handle import TableHandle
from pyhudi.api.queries import Where
from pyhudi.api.rows import changes as row_changes
from pyhudi.api.rows.frame_merges import merge_frame
from pyhudi.api.writes import WriteCall
from pyhudi.errors import Invalid
from pyhudi.write.input.source import Operation
from pyhudi.write.operation import WriteResult
from pyhudi.write.rows.clauses import MergeClauses

if TYPE_CHECKING:
    from pyhudi.api.table import HudiTable


class RowCalls:
    """Row-level changes of a table. Each call is one commit, made of one snapshot, whatever others write meanwhile."""

    _handle: TableHandle

    def delete(
        self,
        data: Any = None,
        *,
        where: Where | None = None,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Delete the rows of these keys, or those that a predicate chooses: exactly one of the two.

        `data`: rows, or only their key and partition columns. Without the ordering column a delete wins; with it the
        ordering decides. An absent key is no error.

        `where`: as in `scan`; `"true"`: all rows. Runs in this process. Only files that may hold such a row are read,
        and the delete wins whatever the ordering values are. Where no row matches, there is no commit.
        """
        call = WriteCall(options, extra_metadata, on_commit)
        if (data is None) is (where is None):
            found = "neither; where='true' deletes all rows" if data is None else "both; leave one of them out"
            raise Invalid(f"delete: expected rows, or where=…, found {found}")
        if where is not None:
            return row_changes.delete_where(self._handle, where, call)
        return writes.write(self._handle, Operation.DELETE, data, call)

    def update(
        self,
        set: Mapping[str, Any],
        where: Where | None = None,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Give columns new values in the rows that a predicate chooses; `where` None: in all rows.

        `set`: column -> Spark SQL text over the row's columns, such as `{"n": "n + 1", "city": "'oslo'"}`, a
        `pyarrow.compute.Expression`, or a value that is no str, such as `None`, `5` or `pyarrow.scalar("oslo")`. All
        of them see the row as it was. Values become the column's type as in Spark's UPDATE: one that does not fit is
        an error. Runs in this process. Only files that may hold such a row are read. Where no row matches, there is no
        commit.

        Raises: Invalid for an unknown column or function, a key column, a partition column unless a global index moves
        rows, a value that does not fit, and a row that would lose against the stored one by its ordering value;
        Unsupported where the table's rules of merging make one row of two. Nothing is written then.
        """
        call = WriteCall(options, extra_metadata, on_commit)
        return row_changes.update(self._handle, set, where, call)

    def merge(
        self,
        source: Any,
        on: str | Iterable[str] | None = None,
        *,
        when_matched_update: Any = None,
        when_matched_delete: Any = None,
        when_not_matched_insert: Any = None,
        when_not_matched_by_source_update: Any = None,
        when_not_matched_by_source_delete: Any = None,
        source_alias: str = "source",
        target_alias: str = "target",
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Change, delete and insert rows by the rows of a source, in one commit.

        `source`: anything that speaks the Arrow stream interface, which is held in memory; or a Spark DataFrame, which
        Spark merges: then texts are Spark's, and values may be PySpark's columns. `on`: which rows match, as
        Spark SQL text such as `"target.id = source.id"`, or names of columns that are equal; None: the record key, and
        the partition columns where the source has them. Null equals nothing.

        A clause is True (every column as the source has it, or every row for a delete), columns and their values such
        as `{"n": "target.n + source.n"}`, for a delete a condition, or a `pyhudi.When` with a condition and values;
        several in a list. A row goes to the first clause that takes it: those with a condition first, of these deletes
        first. `when_not_matched_by_source_…`: rows of the table that match none of the source; the whole table is read
        then, otherwise only files that may hold a match. Where nothing changes, there is no commit.

        Raises: Invalid for a row of the table that several rows of the source match (unless all that matches is
        deleted), for new rows of one record key or of a stored one, and as `update`; Unsupported as `update`, and for a
        Spark DataFrame before `pyhudi.spark.register`.
        """
        clauses = MergeClauses(
            when_matched_update,
            when_matched_delete,
            when_not_matched_insert,
            when_not_matched_by_source_update,
            when_not_matched_by_source_delete,
        )
        call, aliases = WriteCall(options, extra_metadata, on_commit), (source_alias, target_alias)
        if isinstance(on, Iterable) and not isinstance(on, str):
            on = tuple(on)  # it is read anew by each attempt
        if (frame := frames.spark_dataframe(source)) is not None:
            return merge_frame(cast("HudiTable", self), frame, on, clauses, aliases, call)
        return row_changes.merge(self._handle, source, on, clauses, aliases, call)
