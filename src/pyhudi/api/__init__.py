"""The public surface of pyhudi."""

from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.model.instant import Instant
from pyhudi.table.read_plan import Explanation
from pyhudi.write.operation import WriteResult

__all__ = ["Explanation", "HudiTable", "Instant", "Scan", "WriteResult"]
