"""The expiry of partitions as a call of a table."""

from collections.abc import Mapping

from pyhudi.api import writes
from pyhudi.api.handle import TableHandle
from pyhudi.services.expiry.plan import ExpiryResult


class ExpiryCalls:
    """The call about partitions that have expired that a table has."""

    _handle: TableHandle

    def expire_partitions(self, *, options: Mapping[str, object] | None = None, dry_run: bool = False) -> ExpiryResult:
        """Delete the partitions that were last written to, or made, longer ago than `hoodie.partition.ttl.*` says.

        All in one commit, as `delete_partitions`. One that is written to meanwhile stays, and so does one in which a
        compaction or clustering is pending. `dry_run`: only say what would go. It runs after writes by itself where
        `hoodie.partition.ttl.inline` is true. Raises: Conflict while another writer holds the table.
        """
        return self._handle.told("expiry", lambda: writes.expire_partitions(self._handle, options, dry_run=dry_run))
