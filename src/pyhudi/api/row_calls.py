"""The calls that change rows where they are: deletes, updates and merges. `HudiTable` has them from here."""

from collections.abc import Mapping
from typing import Any

from pyhudi.api import row_changes, writes
from pyhudi.api.handle import TableHandle
from pyhudi.api.queries import Where
from pyhudi.api.writes import OnCommit, WriteCall
from pyhudi.errors import Invalid
from pyhudi.write.input.source import Operation
from pyhudi.write.operation import WriteResult


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
            found = "neither" if data is None else "both"
            raise Invalid(f"delete: expected rows, or where=…, found {found}; where='true' deletes all rows")
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

        Raises: Invalid for an unknown column or function, a key or partition column, a value that does not fit, and a
        row that would lose against the stored one by its ordering value; Unsupported where the table's rules of merging
        make one row of two. Nothing is written then.
        """
        call = WriteCall(options, extra_metadata, on_commit)
        return row_changes.update(self._handle, set, where, call)
